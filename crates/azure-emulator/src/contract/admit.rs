//! One walk over a body: refuses what the contract does not have, and takes out what only the
//! service writes.

use serde_json::{Map, Value as Json};

use super::types::{Contract, Value, Writer};
use crate::json::{same, text};
use crate::message::{Refusal, refusal};
use crate::options::Switch;
use crate::quirks::FUTURE_PROPERTY;

/// What is wrong, and where. The place is put together on the way out, so that a body in order
/// costs nothing for it.
pub(super) struct Fault {
    what: String,
    /// Segments, innermost first.
    path: Vec<Segment>,
}

enum Segment {
    Member(String),
    Item(usize),
}

type Walked = Result<(), Fault>;

impl Fault {
    fn new(what: String) -> Self {
        Fault { what, path: Vec::new() }
    }

    fn below(mut self, member: &str) -> Self {
        self.path.push(Segment::Member(member.to_owned()));
        self
    }

    fn at(mut self, item: usize) -> Self {
        self.path.push(Segment::Item(item));
        self
    }

    /// Microsoft.Network says what is wrong in the details, Microsoft.Compute in the message
    /// (Azure/azure-powershell issue 13544, Azure/azure-sdk-for-net issue 37855).
    pub(super) fn refusal(self, provider: &str) -> Refusal {
        let mut path = String::new();
        for segment in self.path.iter().rev() {
            match segment {
                Segment::Item(at) => path.push_str(&format!("[{at}]")),
                Segment::Member(name) if path.is_empty() => path.push_str(name),
                Segment::Member(name) => path.push_str(&format!(".{name}")),
            }
        }
        let what = format!("{} Path '{path}'.", self.what);
        if provider == "Microsoft.Network" {
            refusal(400, "InvalidRequestFormat", "Cannot parse the request.")
                .because("InvalidJson", what)
        } else {
            refusal(400, "BadRequest", what)
        }
    }
}

/// A walk by one contract.
pub(super) struct Walk<'a> {
    pub(super) contract: &'a Contract,
    /// Whether answers carry a property that no contract has: it is taken back, too.
    pub(super) quirk: Switch,
}

impl Walk<'_> {
    fn value(&self, form: &Value, value: &mut Json, old: Option<&Json>) -> Walked {
        // A member that is null counts as one that is not there.
        if value.is_null() {
            return Ok(());
        }
        match form {
            Value::Anything => Ok(()),
            Value::Text if value.is_string() => Ok(()),
            Value::Whole if value.is_i64() || value.is_u64() => Ok(()),
            Value::Real if value.is_number() => Ok(()),
            Value::Truth if value.is_boolean() => Ok(()),
            Value::Text => Err(unlike(value, "System.String")),
            Value::Whole => Err(unlike(value, "System.Int32")),
            Value::Real => Err(unlike(value, "System.Double")),
            Value::Truth => Err(unlike(value, "System.Boolean")),
            Value::Enumeration(at) => {
                let of = &self.contract.enums[*at];
                match value.as_str() {
                    Some(text) if of.values.iter().any(|known| same(known, text)) => Ok(()),
                    _ => Err(unlike(value, &of.name)),
                }
            }
            Value::Object(at) => self.shape(*at, value, old),
            Value::List(of) => self.list(of, value, old),
            Value::Map(of) => {
                let Some(map) = value.as_object_mut() else {
                    return Err(unlike(value, "Dictionary"));
                };
                map.iter_mut().try_for_each(|(name, value)| {
                    self.value(of, value, None).map_err(|fault| fault.below(name))
                })
            }
        }
    }

    /// Elements are compared with the standing ones of their name. They mostly stand in the order
    /// in which they came, so the search begins after the one found last.
    fn list(&self, of: &Value, value: &mut Json, old: Option<&Json>) -> Walked {
        let Some(items) = value.as_array_mut() else { return Err(unlike(value, "List")) };
        let standing = old.and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        let mut next = 0;
        for (at, item) in items.iter_mut().enumerate() {
            let mut before = None;
            if let (Value::Object(_), false) = (of, standing.is_empty()) {
                let name = text(item, &["name"]);
                let from = next % standing.len();
                let order = (from..standing.len()).chain(0..from);
                let found = order.into_iter().find(|place| {
                    !name.is_empty() && same(text(&standing[*place], &["name"]), name)
                });
                before = found.map(|place| &standing[place]);
                next = found.map_or(next, |place| place + 1);
            }
            self.value(of, item, before).map_err(|fault| fault.at(at))?;
        }
        Ok(())
    }

    /// An object of a type.
    pub(super) fn shape(&self, at: usize, value: &mut Json, old: Option<&Json>) -> Walked {
        let shape = &self.contract.shapes[at];
        let Some(map) = value.as_object_mut() else { return Err(unlike(value, &shape.name)) };
        let old = old.and_then(Json::as_object);
        let mut fault = None;
        let mut echoed = false;
        for (name, value) in map.iter_mut() {
            let standing = old.and_then(|old| old.get(name));
            let walked = match shape.member(name) {
                Some(member) if member.writer == Writer::Client => {
                    self.value(&member.form, value, standing)
                }
                Some(_) => {
                    echoed = true;
                    Ok(())
                }
                None if standing == Some(value) => Ok(()),
                None if self.quirk.is_on() && name == FUTURE_PROPERTY => Ok(()),
                None => Err(Fault::new(format!(
                    "Could not find member '{name}' on object of type '{}'.",
                    shape.name
                ))),
            };
            if let Err(found) = walked {
                // A member that is not there is said to be missing in its object.
                fault = Some(found.below(name));
                break;
            }
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        if let Some(name) = shape.required.iter().find(|name| is_absent(map, name)) {
            return Err(Fault::new(format!("Required property '{name}' not found in JSON.")));
        }
        if echoed || old.is_some() {
            restore(&shape.read_only, map, old);
        }
        Ok(())
    }
}

fn is_absent(map: &Map<String, Json>, name: &str) -> bool {
    map.get(name).is_none_or(Json::is_null)
}

/// Puts what only the service writes to what stands.
fn restore(read_only: &[String], map: &mut Map<String, Json>, old: Option<&Map<String, Json>>) {
    for name in read_only {
        match old.and_then(|old| old.get(name)) {
            Some(standing) if map.get(name) == Some(standing) => {}
            Some(standing) => {
                map.insert(name.clone(), standing.clone());
            }
            None => {
                map.shift_remove(name);
            }
        }
    }
}

fn unlike(value: &Json, to: &str) -> Fault {
    let shown = match value {
        Json::String(text) => text.clone(),
        Json::Array(_) => "[…]".to_owned(),
        Json::Object(_) => "{…}".to_owned(),
        other => other.to_string(),
    };
    Fault::new(format!("Error converting value \"{shown}\" to type '{to}'."))
}
