//! A list in one piece, cut into its objects as it comes.
//!
//! All EndpointSlices of a large cluster are a list of a hundred megabytes. Who wants those of one
//! node has no room for it; one object at a time is enough.

/// Longest object, and longest list without its objects: an object of Kubernetes is at most some
/// 1.5 MB in its store.
const CAP: usize = 32 << 20;

/// How deep the objects of a list are: in its braces and in the brackets of `items`.
const OF_OBJECTS: usize = 2;

/// A list that has come in part.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// The list without its objects and the commas between them.
    rest: Vec<u8>,
    /// The object that is not complete yet.
    object: Vec<u8>,
    /// Braces and brackets that are open.
    depth: usize,
    place: Place,
    /// The last text of the list itself: before a bracket it is the bracket's name.
    name: Vec<u8>,
    in_items: bool,
}

/// Where in the JSON the next byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Between texts.
    #[default]
    Outside,
    /// In a text.
    Text,
    /// Behind a backslash.
    Escape,
}

impl Items {
    /// Takes in what has come, and gives the objects that are complete now.
    ///
    /// # Errors
    /// Something is longer than Kubernetes lets it be, or is no text.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<Vec<String>, String> {
        let mut complete = Vec::new();
        for &byte in piece {
            let before = self.depth;
            self.go_on(byte);
            if self.in_items && before.max(self.depth) > OF_OBJECTS {
                self.object.push(byte);
                if self.depth == OF_OBJECTS {
                    let object = String::from_utf8(std::mem::take(&mut self.object));
                    complete.push(object.map_err(|e| format!("an object is no text: {e}"))?);
                }
            } else if !(self.in_items && byte == b',' && self.place == Place::Outside) {
                self.rest.push(byte);
            }
        }
        if self.object.len() > CAP || self.rest.len() > CAP {
            return Err(format!("an object is longer than {CAP} bytes"));
        }
        Ok(complete)
    }

    /// What the list says beside its objects: a list without any.
    pub(super) fn rest(&self) -> &[u8] {
        &self.rest
    }

    fn go_on(&mut self, byte: u8) {
        match (self.place, byte) {
            (Place::Outside, b'"') => {
                self.place = Place::Text;
                if self.depth < OF_OBJECTS {
                    self.name.clear();
                }
            }
            (Place::Outside, b'{' | b'[') => {
                self.depth += 1;
                if self.depth == OF_OBJECTS {
                    self.in_items = byte == b'[' && self.name == b"items";
                }
            }
            (Place::Outside, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                self.in_items &= self.depth >= OF_OBJECTS;
            }
            (Place::Outside, _) => {}
            (Place::Text, b'"') => self.place = Place::Outside,
            (Place::Text | Place::Escape, _) => {
                let escapes = self.place == Place::Text && byte == b'\\';
                self.place = if escapes { Place::Escape } else { Place::Text };
                if self.depth < OF_OBJECTS {
                    self.name.push(byte);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::read_page;
    use super::*;

    /// The objects of a list that comes in pieces of this length, and its revision.
    fn cut(list: &str, length: usize) -> (Vec<String>, Result<String, String>) {
        let mut items = Items::default();
        let pieces = list.as_bytes().chunks(length);
        let found = pieces.flat_map(|piece| items.add(piece).unwrap()).collect();
        (found, read_page(items.rest()).map(|page| page.revision))
    }

    #[test]
    fn a_list_is_cut_into_its_objects_wherever_its_pieces_end() {
        let objects = [
            r#"{"metadata":{"name":"a"},"items":[{"no":["[","}"]}]}"#,
            r#"{ "text" : "a \"quoted\" brace { and \\" , "name" : "ü" }"#,
            "{}",
        ];
        let metadata = r#""metadata":{"resourceVersion":"7","items":[1]}"#;
        let all = format!(r#""items" : [ {} ]"#, objects.join(" ,\n"));
        for list in [
            format!(r#"{{"kind":"items",{metadata},{all}}}"#),
            // Go writes the metadata first; others need not.
            format!(r#"{{{all},"kind":"L",{metadata}}}"#),
        ] {
            for length in 1..=list.len() {
                let (found, revision) = cut(&list, length);
                assert_eq!(found, objects, "{length}");
                assert_eq!(revision.as_deref(), Ok("7"), "{length}");
            }
        }
    }

    #[test]
    fn without_objects_there_are_none_and_what_is_cut_off_is_no_list() {
        for none in ["[]", "null"] {
            let list = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":{none}}}"#);
            assert_eq!(cut(&list, 3), (Vec::new(), Ok("7".to_owned())));
        }
        let whole = r#"{"metadata":{"resourceVersion":"7"},"items":[{"a":1},{"b":2}]}"#;
        for length in 0..whole.len() {
            let (_, revision) = cut(&whole[..length], 5);
            assert!(revision.is_err(), "{}", &whole[..length]);
        }
        for odd in ["{}", r#"{"items":[{"a":1}]}"#, r#"{"kind":"Status","code":500}"#, "[]", "x"] {
            assert!(cut(odd, 4).1.is_err(), "{odd}");
        }
    }

    #[test]
    fn a_long_object_and_bytes_that_are_no_text_are_refused() {
        let mut items = Items::default();
        assert_eq!(items.add(br#"{"items":[{"a":""#), Ok(Vec::new()));
        let error = items.add(&vec![b'x'; CAP + 1]).unwrap_err();
        assert!(error.contains("longer"), "{error}");
        let error = Items::default().add(b"{\"items\":[{\"a\":\"\xff\"}]}").unwrap_err();
        assert!(error.contains("no text"), "{error}");
    }
}
