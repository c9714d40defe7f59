//! The Service that a command is about.

use model::ServiceName;

/// The namespace where neither a flag nor a kubeconfig says one.
pub const NAMESPACE: &str = "default";

/// A Service by its name, with its namespace before it or beside it.
#[derive(Debug, clap::Args)]
pub struct ServiceArgs {
    /// The Service
    #[arg(value_name = "[NAMESPACE/]NAME")]
    pub service: String,
    /// Namespace of the Service, where NAME has none [default: that of the kubeconfig's context]
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
}

impl ServiceArgs {
    /// Its whole name; `otherwise` is the namespace where nothing names one.
    #[must_use]
    pub fn name(&self, otherwise: &str) -> ServiceName {
        named(&self.service, self.namespace.as_deref().unwrap_or(otherwise))
    }
}

/// The Service of a name; one without a namespace before it is in `namespace`.
#[must_use]
pub fn named(service: &str, namespace: &str) -> ServiceName {
    match service.split_once('/') {
        Some((namespace, name)) => ServiceName::new(namespace, name),
        None => ServiceName::new(namespace, service),
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_namespace_before_the_name_counts() {
        assert_eq!(named("web", "shop").to_string(), "shop/web");
        assert_eq!(named("other/web", "shop").to_string(), "other/web");
    }
}
