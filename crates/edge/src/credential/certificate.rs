//! Client certificates: PEM and PFX files.

use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
use ring::rsa::KeyPair as RsaKeyPair;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;

/// An RSA key and its certificate.
pub struct Certificate {
    key: RsaKeyPair,
    der: Vec<u8>,
    chain: Vec<Vec<u8>>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(secret)")
    }
}

/// Why a certificate file is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Neither form.
    #[error("it is neither PEM with a private key nor PFX: {0}")]
    Unreadable(String),
    /// The password does not fit, or the file is damaged.
    #[error("it does not open as PFX with the password given: {0}")]
    Closed(String),
    /// An encrypted PEM key.
    #[error("its private key is encrypted PEM, which is not supported; store it as PFX")]
    EncryptedPem,
    /// No private key.
    #[error("it holds no private key")]
    NoKey,
    /// A key of another kind, or too short.
    #[error("its private key is not RSA of 2048 to 4096 bits: {0}")]
    NotRsa(String),
    /// The certificate is missing or another key's.
    #[error("it holds no certificate for its private key")]
    NoCertificate,
}

impl Certificate {
    /// Reads a file's bytes; PEM is known by its first dashes.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn read(bytes: &[u8], password: &str) -> Result<Self, CertificateError> {
        let is_pem = bytes.windows(11).any(|w| w == b"-----BEGIN ");
        if is_pem { Self::from_pem(bytes) } else { Self::from_pfx(bytes, password) }
    }

    fn from_pem(bytes: &[u8]) -> Result<Self, CertificateError> {
        let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
        if bytes.windows(encrypted.len()).any(|w| w == encrypted) {
            return Err(CertificateError::EncryptedPem);
        }
        let key = PrivateKeyDer::from_pem_slice(bytes).map_err(|_| CertificateError::NoKey)?;
        let key = match &key {
            PrivateKeyDer::Pkcs1(key) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(key) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
            _ => return Err(CertificateError::NotRsa("an elliptic curve key".into())),
        };
        let key = key.map_err(|e| CertificateError::NotRsa(e.to_string()))?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
        let found = found.map_err(|e| CertificateError::Unreadable(e.to_string()))?;
        Self::pair(key, found.iter().map(AsRef::as_ref))
    }

    fn from_pfx(bytes: &[u8], password: &str) -> Result<Self, CertificateError> {
        let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Relaxed)
            .map_err(|e| CertificateError::Closed(e.to_string()))?;
        let (_, chain) = store.private_key_chain().ok_or(CertificateError::NoKey)?;
        let key = RsaKeyPair::from_pkcs8(chain.key().as_der())
            .map_err(|e| CertificateError::NotRsa(e.to_string()))?;
        Self::pair(key, chain.certs().iter().map(p12_keystore::Certificate::as_der))
    }

    /// Picks the certificate that names the key: its public half stands in it word for word.
    fn pair<'a>(
        key: RsaKeyPair,
        found: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, CertificateError> {
        let public = key.public().as_ref().to_vec();
        let names_key = |der: &&[u8]| der.windows(public.len()).any(|w| w == public);
        let (own, chain): (Vec<&[u8]>, Vec<&[u8]>) = found.partition(names_key);
        let der = own.first().ok_or(CertificateError::NoCertificate)?.to_vec();
        Ok(Self { key, der, chain: chain.into_iter().map(<[u8]>::to_vec).collect() })
    }

    /// The RSA key.
    #[must_use]
    pub fn key(&self) -> &RsaKeyPair {
        &self.key
    }

    /// The certificate.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }
    /// The certificate and the others that came with it.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.der()).chain(self.chain.iter().map(Vec::as_slice))
    }
}
