//! The web console: read-only pages over World, Report, plan and history, written as HTML.
//!
//! # Guarantees
//! - Whatever comes from a cluster or from Azure is escaped: text enters a page only through
//!   [`html::Html`], which knows no other way.
//! - The same views give the same page, byte for byte.
//! - A page's size does not grow with the number of Services: lists are cut into pages.
//! - Of annotations only those are shown that configure load balancers.
//!
//! # Assumptions
//! Times come in as milliseconds since the Unix epoch.

pub mod history;
pub mod html;
pub mod page;
pub mod plan_view;
pub mod span;
pub mod topology;
pub mod view;

/// The style sheet.
pub const STYLE: &str = include_str!("../assets/console.css");
/// The script: live updates, running times, dragging a drawing.
pub const SCRIPT: &str = include_str!("../assets/console.js");
/// The icon in the browser's tab.
pub const ICON: &str = include_str!("../assets/console.svg");

/// `Content-Security-Policy` of every page: nothing from elsewhere, nothing in line, no framing.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; \
    script-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'self'";
