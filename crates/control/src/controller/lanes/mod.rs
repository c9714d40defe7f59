//! Writes in Azure are sent, followed to their end and tried again. Services whose writes Azure
//! refuses are found and set aside.

mod follow;
mod rejected;
mod send;
