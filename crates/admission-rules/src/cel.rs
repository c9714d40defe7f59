//! Pieces of expressions.

use plan::ask::annotation::{self, PREFIX, Truth};

/// A name of a network resource, or nothing.
pub const NAME: &str = "^([A-Za-z0-9_]([A-Za-z0-9._-]{0,78}[A-Za-z0-9_])?)?$";
/// The letters of a name of a resource group. How many there are is counted elsewhere: letters of
/// all scripts, many times over, make a pattern that takes long to read.
pub const GROUP: &str = "[\\p{L}\\p{N}._()-]*[\\p{L}\\p{N}_()-]";
/// A whole number, before its bounds are looked at.
const WHOLE: &str = "^[+]?[0-9]{1,18}$";

/// A text as CEL writes it, without escapes.
pub fn quote(text: &str) -> String {
    format!("r'{text}'")
}

/// An annotation's value without blanks around it; empty where there is none.
pub fn text(key: &str) -> String {
    value(&quote(&annotation::full(key)))
}

/// The same for a key that is an expression.
fn value(key: &str) -> String {
    format!("({key} in variables.a ? variables.a[{key}].trim() : '')")
}

/// The value of an annotation of a port; `number` is an expression.
pub fn of_port(number: &str, rest: &str) -> String {
    value(&port_key(number, rest))
}

fn port_key(number: &str, rest: &str) -> String {
    format!("('{PREFIX}port_' + string({number}) + '_{rest}')")
}

/// Whether an annotation of a port is there; `number` is an expression.
pub fn present_of_port(number: &str, rest: &str) -> String {
    format!("({} in variables.a)", port_key(number, rest))
}

/// Whether an annotation is there.
pub fn present(key: &str) -> String {
    format!("({} in variables.a)", quote(&annotation::full(key)))
}

/// Whether an annotation says true, as its entry in the table reads it.
pub fn is_set(key: &str) -> String {
    is_true(key, annotation::truth(key))
}

/// Whether an annotation says true, read in this way.
pub fn is_true(key: &str, truth: Truth) -> String {
    says_true(&whole(&quote(&annotation::full(key))), truth)
}

/// Whether an expression says true, read in this way.
pub fn says_true(value: &str, truth: Truth) -> String {
    match truth {
        Truth::Exact => format!("{value} == 'true'"),
        Truth::AnyCase => format!("{value}.lowerAscii() == 'true'"),
        Truth::Trimmed => format!("{value}.trim().lowerAscii() == 'true'"),
    }
}

/// The value of an annotation with the blanks around it; `key` is an expression.
fn whole(key: &str) -> String {
    format!("({key} in variables.a ? variables.a[{key}] : '')")
}

/// Whether an expression matches a pattern.
pub fn matches(value: &str, pattern: &str) -> String {
    format!("{value}.matches({})", quote(pattern))
}

/// Whether an expression is a name of a resource group, or empty.
pub fn is_group(value: &str) -> String {
    format!("(size({value}) <= 90 && {})", matches(value, &format!("^({GROUP})?$")))
}

/// The entries of an annotation, separated by commas.
pub fn list(key: &str) -> String {
    entries(key, ',')
}

/// The entries of an annotation that is there, separated by commas, empty ones among them.
pub fn list_with_empty(key: &str) -> String {
    let entries = format!("{}.split(',').map(e, e.trim())", text(key));
    format!("({} ? {entries} : [])", present(key))
}

/// The entries of an annotation, separated by blanks.
pub fn words(key: &str) -> String {
    entries(key, ' ')
}

fn entries(key: &str, separator: char) -> String {
    format!("{}.split('{separator}').map(e, e.trim()).filter(e, e != '')", text(key))
}

/// Whether a text is a whole number within bounds.
pub fn is_whole(value: &str, from: u64, to: u64) -> String {
    format!("({} && int({value}) >= {from} && int({value}) <= {to})", matches(value, WHOLE))
}

/// Whether a text is a range whose host bits are zero.
pub fn is_range(value: &str) -> String {
    format!("isCIDR({value}) && cidr({value}).masked() == cidr({value})")
}

/// Whether an annotation of a port says true; `port` is the name of the port.
pub fn is_set_of_port(port: &str, rest: &str) -> String {
    let truth = annotation::truth(&format!("port_80_{rest}"));
    says_true(&whole(&port_key(&format!("{port}.port"), rest)), truth)
}

/// The first of two annotations that is there, else a default: that of the port `number`, or that
/// of all ports. The default is an expression.
pub fn of_port_or_all(number: &str, rest: &str, all: &str, default: &str) -> String {
    let (key, all) = (port_key(number, rest), quote(&format!("{PREFIX}{all}")));
    format!(
        "({key} in variables.a ? variables.a[{key}].trim() : {all} in variables.a ? \
         variables.a[{all}].trim() : {default})"
    )
}

/// All annotations.
pub fn annotations() -> (&'static str, String) {
    ("a", annotations_of("object"))
}

fn annotations_of(object: &str) -> String {
    format!("has({object}.metadata.annotations) ? {object}.metadata.annotations : {{}}")
}

/// An expression about annotations alone, asked of the Service before the change.
pub fn before(expression: &str) -> String {
    expression.replace("variables.a", &format!("({})", annotations_of("oldObject")))
}

/// Whether a port has a node port.
pub const NODE_PORT: &str = "(has(p.nodePort) && p.nodePort > 0)";
