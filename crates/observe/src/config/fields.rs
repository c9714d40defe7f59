//! The keys of a config, in any letter case, with all that is wrong about them.

use super::error::{ConfigError, allowed, missing};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys whose values are never printed.
const SECRET_KEYS: [&str; 2] = ["aadclientsecret", "aadclientcertpassword"];

/// The keys of an object that have not been asked for yet, and what was wrong with the others.
pub(super) struct Fields {
    /// By lower-case key: the key as written, and its value.
    unread: BTreeMap<String, (String, Value)>,
    errors: Vec<ConfigError>,
    warnings: Vec<String>,
}

impl Fields {
    pub fn new(object: Map<String, Value>) -> Self {
        let mut unread = BTreeMap::new();
        let mut warnings = Vec::new();
        for (key, value) in object {
            let twice = unread.insert(key.to_lowercase(), (key.clone(), value));
            if let Some((first, _)) = twice {
                warnings.push(format!("{first} and {key} are the same key: the last one counts"));
            }
        }
        Self { unread, errors: Vec::new(), warnings }
    }

    pub fn finish(self) -> (Vec<ConfigError>, Vec<String>) {
        (self.errors, self.warnings)
    }

    pub fn error(&mut self, error: ConfigError) {
        self.errors.push(error);
    }

    pub fn warn(&mut self, warning: &str) {
        self.warnings.push(warning.to_owned());
    }

    /// Keys nobody has asked for, as written.
    pub fn unread(&self) -> Vec<String> {
        self.unread.values().map(|(key, _)| key.clone()).collect()
    }

    /// Takes a value; null is as good as absent.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        let (_, value) = self.unread.remove(&key.to_lowercase())?;
        (!value.is_null()).then_some(value)
    }

    /// Text that is not blank.
    pub fn text(&mut self, key: &str) -> Option<String> {
        let text = match self.take(key)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            other => {
                self.refuse(key, &other, "text");
                return None;
            }
        };
        (!text.is_empty()).then_some(text)
    }

    /// Text that has to be there.
    pub fn required(&mut self, key: &str, purpose: &str) -> String {
        let errors = self.errors.len();
        match self.text(key) {
            Some(text) => text,
            None => {
                if self.errors.len() == errors {
                    self.error(missing(key, purpose));
                }
                String::new()
            }
        }
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.take(key)?;
        let text = value.as_str().map(|t| t.trim().to_lowercase());
        match (&value, text.as_deref()) {
            (Value::Bool(flag), _) => Some(*flag),
            (_, Some("true")) => Some(true),
            (_, Some("false")) => Some(false),
            (_, Some("")) => None,
            _ => {
                self.refuse(key, &value, "true or false");
                None
            }
        }
    }

    pub fn number(&mut self, key: &str, least: u32, most: u32) -> Option<u32> {
        let value = self.take(key)?;
        let found = match &value {
            Value::String(text) if text.trim().is_empty() => return None,
            Value::String(text) => text.trim().parse().ok(),
            Value::Number(number) => number.as_u64().and_then(|n| u32::try_from(n).ok()),
            _ => None,
        };
        let found = found.filter(|n| (least..=most).contains(n));
        if found.is_none() {
            self.refuse(key, &value, &format!("a whole number from {least} to {most}"));
        }
        found
    }

    /// One of the words, in any letter case.
    pub fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text));
        if found.is_none() {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(allowed(key, &text, &format!("one of {}", names.join(", "))));
        }
        found.map(|(_, value)| *value)
    }

    /// A list, or texts with commas between them; `None` when nothing is in it.
    pub fn list(&mut self, key: &str) -> Option<Vec<Arc<str>>> {
        let texts: Vec<String> = match self.take(key)? {
            Value::String(text) => text.split(',').map(str::to_owned).collect(),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            other => {
                self.refuse(key, &other, "text, or texts separated by commas");
                return None;
            }
        };
        let found = texts.iter().map(|t| t.trim()).filter(|t| !t.is_empty());
        let found: Vec<Arc<str>> = found.map(Arc::from).collect();
        (!found.is_empty()).then_some(found)
    }

    /// Reads each object of a list; what goes wrong there names the path.
    pub fn each<T>(&mut self, key: &str, read: fn(&mut Self) -> T) -> Vec<T> {
        let items = match self.take(key) {
            None => return Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.refuse(key, &other, "a list");
                return Vec::new();
            }
        };
        let items = items.into_iter().enumerate();
        items.filter_map(|(i, item)| self.inner(&format!("{key}[{i}]"), item, read)).collect()
    }

    /// Reads below a key with the same rules; what goes wrong there names the path.
    pub fn inner<T>(
        &mut self,
        path: &str,
        value: Value,
        read: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        let Value::Object(object) = value else {
            self.refuse(path, &value, "an object");
            return None;
        };
        let mut inner = Self::new(object);
        let found = read(&mut inner);
        let unread = inner.unread();
        if !unread.is_empty() {
            inner.warnings.push(format!("unknown keys: {}", unread.join(", ")));
        }
        self.errors.extend(inner.errors.into_iter().map(|e| below(path, e)));
        self.warnings.extend(inner.warnings.into_iter().map(|w| format!("{path}: {w}")));
        Some(found)
    }

    pub fn refuse(&mut self, key: &str, value: &Value, allowed: &str) {
        let secret = SECRET_KEYS.contains(&key.to_lowercase().as_str());
        let value = if secret { "a value that is not shown".to_owned() } else { value.to_string() };
        self.error(ConfigError::Value { key: key.to_owned(), value, allowed: allowed.to_owned() });
    }
}

fn below(path: &str, error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Value { key, value, allowed } => {
            ConfigError::Value { key: format!("{path}.{key}"), value, allowed }
        }
        ConfigError::Missing { key, purpose } => {
            ConfigError::Missing { key: format!("{path}.{key}"), purpose }
        }
        ConfigError::Clash { at, what } if at.is_empty() => {
            ConfigError::Clash { at: path.to_owned(), what }
        }
        ConfigError::Clash { at, what } => ConfigError::Clash { at: format!("{path}.{at}"), what },
        ConfigError::Unreadable(what) => ConfigError::Unreadable(format!("{path}: {what}")),
    }
}
