//! TLS certificates.

use std::io;
use std::path::Path;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Reads a certificate chain and its key from PEM files.
///
/// # Errors
/// If a file cannot be read, or the two do not match.
pub fn certificate(chain: &Path, key: &Path) -> io::Result<ServerConfig> {
    let chain = CertificateDer::pem_file_iter(chain).map_err(io::Error::other)?;
    let chain: Vec<_> = chain.collect::<Result<_, _>>().map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(io::Error::other)?;
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    config.with_no_client_auth().with_single_cert(chain, key).map_err(io::Error::other)
}
