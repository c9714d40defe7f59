use super::certificate::{Certificate, CertificateError};
use super::cli::Cli;
use super::entra::{Entra, Proof};
use super::identity_file::IdentityFile;
use super::managed::{Identity, Managed};
use super::*;
use crate::clock::Clock;
use crate::cloud::Endpoints;
use crate::fake::{Act, Fake, Seen, json};
use crate::origin::Origin;
use crate::web::Web;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use observe::config::{CloudSettings, Credential};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

fn certificate_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

fn entra(url: &str, proof: Proof) -> Entra {
    let web = Web::loopback().unwrap();
    let audience = "https://management.azure.com";
    Entra::new(web, Clock::start(), url, "tenant", "client", audience, proof).unwrap()
}

fn given(text: &str) -> Act {
    json(200, &json!({"access_token": text, "expires_in": 3600, "token_type": "Bearer"}))
}

fn field(form: &str, name: &str) -> String {
    let value = form
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("no {name} in {form}"));
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let hex = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}

async fn token_file(text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ballast-{}", crate::random::uuid()));
    tokio::fs::write(&path, text).await.unwrap();
    path
}

#[tokio::test]
async fn a_client_secret_is_posted_and_never_shown() {
    let fake = Fake::start(|_, _| given("tok")).await;
    let proof = Proof::Secret(Secret::new("s&cret=1"));
    let source = entra(&fake.url, proof);
    assert_eq!(source.token().await.unwrap().secret.expose(), "tok");
    let seen = &fake.seen()[0];
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/tenant/oauth2/v2.0/token"));
    assert_eq!(field(&seen.body, "grant_type"), "client_credentials");
    assert_eq!(field(&seen.body, "scope"), "https://management.azure.com/.default");
    assert_eq!(field(&seen.body, "client_id"), "client");
    assert_eq!(field(&seen.body, "client_secret"), "s&cret=1");
    assert!(!format!("{source:?}").contains("s&cret"));
}

#[tokio::test]
async fn a_refusal_says_what_was_attempted_where_and_what_to_do() {
    let fake = Fake::start(|seen, _| {
        let text = format!("AADSTS7000222: expired: {}", field(&seen.body, "client_secret"));
        json(401, &json!({"error": "invalid_client", "error_description": text}))
    })
    .await;
    let error = entra(&fake.url, Proof::Secret(Secret::new("hush"))).token().await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("AADSTS7000222"));
    let text = error.to_string();
    for part in ["client secret", "client client", &fake.url, "expired", "make a new one"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test]
async fn a_token_file_is_read_anew_each_time() {
    let fake = Fake::start(|seen, _| given(&field(&seen.body, "client_assertion"))).await;
    let path = token_file("first\n").await;
    let source = entra(&fake.url, Proof::Federated { path: path.clone() });
    assert_eq!(source.token().await.unwrap().secret.expose(), "first");
    tokio::fs::write(&path, "second").await.unwrap();
    assert_eq!(source.token().await.unwrap().secret.expose(), "second");
    tokio::fs::remove_file(&path).await.unwrap();
    let error = source.token().await.unwrap_err().to_string();
    assert!(error.contains(&path.display().to_string()), "{error}");
    assert_eq!(fake.seen().len(), 2);
}

#[tokio::test]
async fn a_certificate_signs_an_assertion() {
    for (name, password) in [("client.pem", ""), ("client.pfx", "opensesame"), ("legacy.pfx", "")] {
        let fake = Fake::start(|_, _| given("tok")).await;
        let path = certificate_path(name);
        let proof = Proof::Certificate { path: path.clone(), password: Secret::new(password) };
        let token = entra(&fake.url, proof).token().await.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(token.secret.expose(), "tok");
        let assertion = field(&fake.seen()[0].body, "client_assertion");
        let (text, signature) = assertion.rsplit_once('.').unwrap();
        let certificate = Certificate::read(&std::fs::read(&path).unwrap(), password).unwrap();
        let public = certificate.key().public().as_ref().to_vec();
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, public)
            .verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
            .unwrap();
        let (header, claims) = text.split_once('.').unwrap();
        let parse = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(parse(header)["alg"], "PS256");
        assert_eq!(parse(header).get("x5t"), None);
        assert_eq!(parse(header)["x5c"][0], STANDARD.encode(certificate.der()));
        assert_eq!(parse(header)["x5t#S256"].as_str().unwrap().len(), 43);
        let claims = parse(claims);
        assert_eq!(claims["aud"], format!("{}/tenant/oauth2/v2.0/token", fake.url));
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!("client"), &json!("client")));
    }
}

/// A node's clock is often set some time after its first pods were started, and stands still while
/// a machine is suspended.
#[tokio::test]
async fn an_assertion_has_the_time_of_the_wall_clock_as_it_is_now() {
    let fake = Fake::start(|_, _| given("tok")).await;
    let proof =
        Proof::Certificate { path: certificate_path("client.pem"), password: Secret::new("") };
    let (web, clock) = (Web::loopback().unwrap(), Clock::started_behind(3_600_000));
    let source = Entra::new(web, clock, &fake.url, "tenant", "client", "aud", proof).unwrap();
    let before = crate::clock::wall_ms() / 1_000;
    source.token().await.unwrap();
    let assertion = field(&fake.seen()[0].body, "client_assertion");
    let claims = assertion.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    let (from, until) = (claims["nbf"].as_u64().unwrap(), claims["exp"].as_u64().unwrap());
    assert!(from >= before && until <= before + 700, "{claims}");
}

#[tokio::test]
async fn ad_fs_knows_a_certificate_by_its_older_thumbprint() {
    let fake = Fake::start(|_, _| given("tok")).await;
    let path = certificate_path("client.pem");
    let proof = Proof::Certificate { path: path.clone(), password: Secret::new("") };
    let web = Web::loopback().unwrap();
    let source = Entra::new(web, Clock::start(), &fake.url, "adfs", "client", "aud", proof);
    source.unwrap().token().await.unwrap();
    let assertion = field(&fake.seen()[0].body, "client_assertion");
    let (text, signature) = assertion.rsplit_once('.').unwrap();
    let certificate = Certificate::read(&std::fs::read(&path).unwrap(), "").unwrap();
    let public = certificate.key().public().as_ref().to_vec();
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public)
        .verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
    let header = URL_SAFE_NO_PAD.decode(text.split_once('.').unwrap().0).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!((&header["alg"], header["x5t"].as_str().unwrap().len()), (&json!("RS256"), 27));
    assert_eq!(header.get("x5t#S256"), None);
}

#[test]
fn unfit_certificates_are_told_apart() {
    let read = |name: &str, password: &str| {
        let bytes = std::fs::read(certificate_path(name)).unwrap();
        Certificate::read(&bytes, password).unwrap_err()
    };
    assert_eq!(read("mismatched.pem", ""), CertificateError::NoCertificate);
    assert!(matches!(read("client.pfx", "wrong"), CertificateError::Closed(_)));
    let pem = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert_eq!(Certificate::read(pem, "").unwrap_err(), CertificateError::EncryptedPem);
    let no_key = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(Certificate::read(no_key, "").unwrap_err(), CertificateError::NoKey);
}

#[tokio::test]
async fn a_managed_identity_is_asked_for_by_its_kind_of_id() {
    let expires = "1999999999";
    let resource = "/subscriptions/s/resourceGroups/g/providers/x/y/z";
    for (id, expected) in [
        ("", ""),
        ("0000-1111", "&client_id=0000-1111"),
        (resource, "&msi_res_id=%2Fsubscriptions%2Fs%2FresourceGroups%2Fg%2Fproviders%2Fx%2Fy%2Fz"),
    ] {
        let body = json!({"access_token": "m", "expires_on": expires});
        let fake = Fake::start(move |_, _| json(200, &body)).await;
        let web = Web::loopback().unwrap();
        let service = Origin::parse("test", &fake.url).unwrap();
        let source = Managed::new(web, Clock::start(), "https://aud/", Identity::parse(id))
            .with_service(&service);
        assert_eq!(source.token().await.unwrap().expires_ms, 1_999_999_999_000);
        let seen: &Seen = &fake.seen()[0];
        assert_eq!(seen.header("metadata"), "true");
        let path =
            "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Faud%2F";
        assert_eq!(seen.path, format!("{path}{expected}"));
    }
}

#[tokio::test]
async fn an_identity_that_is_not_assigned_is_named() {
    let body = json!({"error": "invalid_request", "error_description": "Identity not found"});
    let fake = Fake::start(move |_, _| json(400, &body)).await;
    let service = Origin::parse("test", &fake.url).unwrap();
    let web = Web::loopback().unwrap();
    let source = Managed::new(web, Clock::start(), "aud", Identity::parse("id-1"));
    let error = source.with_service(&service).token().await.unwrap_err().to_string();
    for part in ["id-1", "Identity not found", "userAssignedIdentityID"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[tokio::test]
async fn a_metadata_service_that_is_busy_is_told_from_one_that_refuses() {
    for (status, retry) in [
        (400, Retry::Shortly),
        (403, Retry::Shortly),
        (404, Retry::BackOff),
        (410, Retry::Updating),
        (429, Retry::BackOff),
        (500, Retry::BackOff),
        (504, Retry::BackOff),
    ] {
        let fake = Fake::start(move |_, _| json(status, &json!({"error": "e"}))).await;
        let service = Origin::parse("test", &fake.url).unwrap();
        let web = Web::loopback().unwrap();
        let source = Managed::new(web, Clock::start(), "aud", Identity::System);
        let source = Arc::new(source.with_service(&service));
        let cached = Cached::new(source, Clock::start());
        let error = cached.token().await.unwrap_err();
        assert_eq!(error.retry, retry, "{status}");
        assert_eq!(cached.token().await.unwrap_err(), error, "{status}");
        assert_eq!(fake.seen().len(), 1, "{status}: the service is left alone for a while");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_azure_cli_is_asked_and_its_complaint_is_passed_on() {
    use std::os::unix::fs::PermissionsExt;
    let script = token_file(concat!(
        "#!/bin/sh\n",
        "[ \"$7\" = --tenant ] || { echo 'Please run az login' >&2; exit 1; }\n",
        "echo \"{\\\"accessToken\\\": \\\"$6 $8\\\", \\\"expires_on\\\": 1999999999}\"\n",
    ))
    .await;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let cli = |tenant| Cli::new("aud", tenant).with_program(&script);
    let token = cli(Some("t")).token().await.unwrap();
    assert_eq!((token.secret.expose(), token.expires_ms), ("aud t", 1_999_999_999_000));
    let error = cli(None).token().await.unwrap_err().to_string();
    assert!(error.contains("Please run az login"), "{error}");
    std::fs::remove_file(&script).unwrap();
    let error = cli(None).token().await.unwrap_err().to_string();
    assert!(error.contains("Install the Azure CLI"), "{error}");
}

pub(crate) fn settings(credential: Credential) -> CloudSettings {
    CloudSettings {
        cloud: observe::config::Cloud::Public,
        stack_quirks: observe::config::StackQuirks::Off,
        resource_manager_endpoint: None,
        tenant_id: Some("t".into()),
        network_tenant_id: None,
        subscription: "s".into(),
        network_subscription: "s".into(),
        identity_system: observe::config::IdentitySystem::EntraId,
        client_id: Some("c".into()),
        credential,
        auxiliary_token: None,
        user_agent: None,
        config_type: observe::config::ConfigType::File,
    }
}

fn chosen(settings: &CloudSettings, place: Place) -> Result<String, CredentialError> {
    let endpoints = Endpoints::builtin(settings.cloud).unwrap();
    let web = Web::loopback().unwrap();
    let source = choose(settings, &endpoints, &web, Clock::start(), place)?;
    Ok(source.map_or("none".to_string(), |s| format!("{s:?}")))
}

#[test]
fn every_credential_has_its_source_and_the_cli_is_for_outside() {
    let password = Secret::new("hush");
    for (credential, expected) in [
        (Credential::FederatedToken { file: "/token".into() }, "Federated"),
        (Credential::ManagedIdentity { user_assigned: Some("i".into()) }, "Managed"),
        (Credential::ClientSecret(Secret::new("hush")), "proof: Secret("),
        (Credential::ClientCertificate { path: "/c".into(), password }, "proof: Certificate"),
        (Credential::IdentityFile { path: "/i".into() }, "IdentityFile"),
        (Credential::None, "none"),
    ] {
        let source = chosen(&settings(credential), Place::Cluster).unwrap();
        assert!(source.contains(expected), "{expected} in {source}");
        assert!(!source.contains("hush"), "{source}");
    }
    assert!(chosen(&settings(Credential::None), Place::Outside).unwrap().contains("Cli"));
}

#[test]
fn incomplete_settings_name_the_missing_key() {
    let secret = || Credential::ClientSecret(Secret::new("s"));
    let no_client = CloudSettings { client_id: None, ..settings(secret()) };
    let error = chosen(&no_client, Place::Cluster).unwrap_err().to_string();
    assert!(error.contains("aadClientId") && error.contains("AZURE_CLIENT_ID"), "{error}");
    let no_tenant = CloudSettings { tenant_id: None, ..settings(secret()) };
    let error = chosen(&no_tenant, Place::Cluster).unwrap_err().to_string();
    assert!(error.contains("tenantId") && error.contains("AZURE_TENANT_ID"), "{error}");
    let other = CloudSettings { network_tenant_id: Some("o".into()), ..settings(secret()) };
    let error = chosen(&other, Place::Cluster).unwrap_err().to_string();
    assert!(error.contains("networkResourceTenantID"), "{error}");
}

#[tokio::test]
async fn an_identity_file_names_its_client_tenant_and_login_endpoint() {
    let fake = Fake::start(|_, _| given("tok")).await;
    let pem = std::fs::read(certificate_path("client.pem")).unwrap();
    let content = json!({
        "client_id": "file-client",
        "tenant_id": "file-tenant",
        "client_secret": STANDARD.encode(pem),
        "authentication_endpoint": format!("{}/", fake.url),
    });
    let path = token_file(&content.to_string()).await;
    let web = Web::loopback().unwrap();
    let elsewhere = "https://login.microsoftonline.com";
    let source = IdentityFile::new(web, Clock::start(), path.clone(), "aud", elsewhere);
    assert_eq!(source.token().await.unwrap().secret.expose(), "tok");
    let seen = &fake.seen()[0];
    assert_eq!(seen.path, "/file-tenant/oauth2/v2.0/token");
    assert_eq!(field(&seen.body, "client_id"), "file-client");
    tokio::fs::write(&path, "{\"client_secret\": \"hush\"}").await.unwrap();
    let error = source.token().await.unwrap_err().to_string();
    assert!(error.contains("client_id") && !error.contains("hush"), "{error}");
    tokio::fs::remove_file(&path).await.unwrap();
}

#[test]
fn a_login_endpoint_in_the_clear_is_refused() {
    let web = Web::loopback().unwrap();
    let proof = Proof::Secret(Secret::new("hush"));
    let error = Entra::new(web, Clock::start(), "http://login.example", "t", "c", "a", proof)
        .unwrap_err()
        .to_string();
    assert!(error.contains("plain HTTP") && !error.contains("hush"), "{error}");
}

#[tokio::test]
async fn many_callers_make_one_request_and_a_forgotten_token_is_fetched_again() {
    let fake = Fake::start(|_, before| given(&format!("tok{before}"))).await;
    let source = Arc::new(entra(&fake.url, Proof::Secret(Secret::new("s"))));
    let cached = Arc::new(Cached::new(source, Clock::start()));
    let callers: Vec<_> = (0..20)
        .map(|_| {
            let cached = Arc::clone(&cached);
            tokio::spawn(async move { cached.token().await.unwrap() })
        })
        .collect();
    let mut last = None;
    for caller in callers {
        let token = caller.await.unwrap();
        assert_eq!(token.secret.expose(), "tok0");
        last = Some(token);
    }
    assert_eq!(fake.seen().len(), 1);
    let first = last.unwrap();
    cached.forget(&first);
    assert_eq!(cached.token().await.unwrap().secret.expose(), "tok1");
    // A late refusal of the old token does not drop the new one.
    cached.forget(&first);
    assert_eq!(cached.token().await.unwrap().secret.expose(), "tok1");
    assert_eq!(fake.seen().len(), 2);
}
