//! JSON patch.

use super::PatchFault;
use crate::json::drop_key;
use serde_json::Value;

pub(super) fn patched(live: &Value, operations: &Value) -> Result<Value, PatchFault> {
    let Some(list) = operations.as_array() else {
        return Err(PatchFault::Malformed("a JSON patch is a list of operations".to_string()));
    };
    let mut object = live.clone();
    for operation in list {
        carry_out(&mut object, operation)?;
    }
    Ok(object)
}

fn carry_out(object: &mut Value, operation: &Value) -> Result<(), PatchFault> {
    let word = |key: &str| operation.get(key).and_then(Value::as_str);
    let need = |key: &str| {
        word(key).ok_or_else(|| {
            PatchFault::Malformed(format!("JSON patch operation {operation} lacks {key:?}"))
        })
    };
    let value = || {
        operation.get("value").cloned().ok_or_else(|| {
            PatchFault::Malformed(format!("JSON patch operation {operation} lacks \"value\""))
        })
    };
    let path = need("path")?;
    match need("op")? {
        "add" => add(object, path, value()?),
        "remove" => remove(object, path).map(drop),
        "replace" => {
            let slot = object.pointer_mut(path).ok_or_else(|| missing("replace", path))?;
            *slot = value()?;
            Ok(())
        }
        "move" => {
            let moved = remove(object, need("from")?)?;
            add(object, path, moved)
        }
        "copy" => {
            let from = need("from")?;
            let copied = object.pointer(from).cloned().ok_or_else(|| missing("copy", from))?;
            add(object, path, copied)
        }
        "test" => match object.pointer(path).unwrap_or(&Value::Null) == &value()? {
            true => Ok(()),
            false => Err(PatchFault::Unfit(format!("testing value {path} failed"))),
        },
        other => Err(PatchFault::Malformed(format!("unknown JSON patch operation {other:?}"))),
    }
}

fn missing(verb: &str, path: &str) -> PatchFault {
    PatchFault::Unfit(format!("{verb} operation does not apply: doc is missing path: {path}"))
}

/// Splits a pointer into its parent and its unescaped last step.
fn split(path: &str) -> Result<(&str, String), PatchFault> {
    let (parent, last) = path
        .rsplit_once('/')
        .ok_or_else(|| PatchFault::Malformed(format!("{path:?} is not a JSON pointer")))?;
    Ok((parent, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), PatchFault> {
    if path.is_empty() {
        *object = value;
        return Ok(());
    }
    let (parent, last) = split(path)?;
    match object.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.insert(last, value);
            Ok(())
        }
        Some(Value::Array(list)) if last == "-" => {
            list.push(value);
            Ok(())
        }
        Some(Value::Array(list)) => match last.parse::<usize>() {
            Ok(at) if at <= list.len() => {
                list.insert(at, value);
                Ok(())
            }
            _ => Err(PatchFault::Unfit(format!("add operation does not apply: no place {path}"))),
        },
        _ => Err(missing("add", path)),
    }
}

fn remove(object: &mut Value, path: &str) -> Result<Value, PatchFault> {
    let (parent, last) = split(path)?;
    let removed = match object.pointer_mut(parent) {
        Some(Value::Object(map)) => drop_key(map, &last),
        Some(Value::Array(list)) => match last.parse::<usize>() {
            Ok(at) if at < list.len() => Some(list.remove(at)),
            _ => None,
        },
        _ => None,
    };
    removed.ok_or_else(|| missing("remove", path))
}
