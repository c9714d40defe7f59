//! What paths the code of a file names.
//!
//! Words and brackets are read, not Rust: comments, texts and what is compiled only for tests are
//! left out. A path inside a macro counts like any other.

/// A path of `use`, or one that starts with `crate`, `self` or `super`.
pub(crate) struct Named<'a> {
    /// The modules inside the file that it stands in.
    pub(crate) within: Vec<&'a str>,
    /// Its parts; `*` is one, and so is the nothing before a path that starts with `::`.
    pub(crate) parts: Vec<&'a str>,
    /// The name that it is re-exported by.
    pub(crate) export: Option<&'a str>,
    /// The line of its last part, or of its first where no `use` names it.
    pub(crate) line: usize,
}

/// The paths that a file's code names, in order.
pub(crate) fn named(code: &str) -> Vec<Named<'_>> {
    let tokens = tokens(code);
    let mut reader = Reader { tokens, at: 0, depth: 0, within: Vec::new(), found: Vec::new() };
    while reader.at < reader.tokens.len() {
        reader.step();
    }
    reader.found
}

/// A word or a sign.
struct Token<'a> {
    text: &'a str,
    line: usize,
}

fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (code, 1);
    while !rest.is_empty() {
        let skipped = skipped(rest);
        let (text, after) = rest.split_at(if skipped > 0 { skipped } else { sign(rest) });
        if skipped == 0 {
            tokens.push(Token { text, line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The length of the word or sign at the start. `::` is one sign.
fn sign(rest: &str) -> usize {
    match rest.find(|letter: char| !is_word(letter)).unwrap_or(rest.len()) {
        0 if rest.starts_with("::") => 2,
        0 => rest.chars().next().map_or(1, char::len_utf8),
        word => word,
    }
}

/// The length of what is no code at the start: space, a comment, a text, a lifetime's mark.
fn skipped(rest: &str) -> usize {
    let space = rest.len() - rest.trim_start().len();
    if space > 0 {
        return space;
    }
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return comment(rest);
    }
    if rest.starts_with('"') {
        return quoted(rest, '"');
    }
    if let Some(after) = rest.strip_prefix('\'') {
        let letter = after.starts_with('\\') || after.chars().nth(1) == Some('\'');
        return if letter { quoted(rest, '\'') } else { 1 };
    }
    raw(rest).unwrap_or(0)
}

/// The length of a comment that ends with a sign, and of those inside.
fn comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    loop {
        let Some(next) = rest[at..].find(['/', '*']) else { return rest.len() };
        at += next;
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
}

/// The length of a text, or of a letter, and its quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            return at + 1;
        }
        if letter == '\\' {
            letters.next();
        }
    }
    rest.len()
}

/// The length of a text that starts with `r"` or `r#"`.
fn raw(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let open = after.trim_start_matches('#');
    let text = open.strip_prefix('"')?;
    let end = format!("\"{}", &after[..after.len() - open.len()]);
    let length = text.find(&end).map_or(text.len(), |at| at + end.len());
    Some(rest.len() - text.len() + length)
}

struct Reader<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    /// The modules inside the file that are open, and at what depth.
    within: Vec<(usize, &'a str)>,
    found: Vec<Named<'a>>,
}

impl<'a> Reader<'a> {
    fn text(&self, ahead: usize) -> &'a str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    fn step(&mut self) {
        match (self.text(0), self.text(1)) {
            ("#", "[") => self.attribute(),
            ("mod", name) if self.text(2) == "{" => {
                self.within.push((self.depth, name));
                self.at += 2;
            }
            ("{", _) => {
                self.depth += 1;
                self.at += 1;
            }
            ("}", _) => {
                self.depth = self.depth.saturating_sub(1);
                self.within.pop_if(|(depth, _)| *depth == self.depth);
                self.at += 1;
            }
            // `impl Trait + use<'a>` imports nothing.
            ("use", next) if next != "<" => {
                let public = self.is_public();
                self.at += 1;
                self.tree(&[], public);
            }
            ("crate" | "self" | "super", "::") => self.path(),
            _ => self.at += 1,
        }
    }

    /// Steps over an attribute, and over what it compiles only for tests.
    fn attribute(&mut self) {
        let end = self.closing(self.at + 1);
        let words = &self.tokens[self.at + 2..end];
        let has = |word: &str| words.iter().any(|token| token.text == word);
        let only_test = self.text(2) == "cfg" && has("test") && !has("not");
        self.at = end + 1;
        if only_test {
            while self.text(0) == "#" {
                self.at = self.closing(self.at + 1) + 1;
            }
            self.item();
        }
    }

    /// Steps over an item: to its `;`, or past its braces.
    fn item(&mut self) {
        loop {
            match self.text(0) {
                ";" => {
                    self.at += 1;
                    return;
                }
                "{" => {
                    self.at = self.closing(self.at) + 1;
                    return;
                }
                "(" | "[" => self.at = self.closing(self.at) + 1,
                "" | "}" => return,
                _ => self.at += 1,
            }
        }
    }

    /// Where the bracket that opens at a place closes.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if depth <= 1 => return at,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Whether `pub` or `pub(…)` stands before.
    fn is_public(&self) -> bool {
        let mut before = self.tokens[..self.at].iter().rev().map(|token| token.text);
        match before.next() {
            Some(")") => before.skip_while(|text| *text != "(").nth(1) == Some("pub"),
            last => last == Some("pub"),
        }
    }

    /// A tree of `use`, below the parts before it.
    fn tree(&mut self, above: &[&'a str], public: bool) {
        let mut parts = above.to_vec();
        if self.text(0) == "::" {
            parts.push("");
            self.at += 1;
        }
        let line = loop {
            if self.text(0) == "{" {
                self.at += 1;
                while !matches!(self.text(0), "}" | "") {
                    self.tree(&parts, public);
                    self.at += usize::from(self.text(0) == ",");
                }
                self.at += 1;
                return;
            }
            let (word, line) = (self.text(0), self.line());
            // `a::{self}` is `a`.
            if word != "self" || parts.is_empty() {
                parts.push(word);
            }
            self.at += 1;
            if self.text(0) != "::" {
                break line;
            }
            self.at += 1;
        };
        let mut name = parts.last().copied();
        if self.text(0) == "as" {
            name = Some(self.text(1));
            self.at += 2;
        }
        self.keep(parts, name.filter(|_| public), line);
    }

    /// A path in code.
    fn path(&mut self) {
        let line = self.line();
        let mut parts = vec![self.text(0)];
        self.at += 1;
        while self.text(0) == "::" && self.text(1).starts_with(is_word) {
            parts.push(self.text(1));
            self.at += 2;
        }
        self.keep(parts, None, line);
    }

    fn keep(&mut self, parts: Vec<&'a str>, export: Option<&'a str>, line: usize) {
        let within = self.within.iter().map(|(_, name)| *name).collect();
        self.found.push(Named { within, parts, export, line });
    }
}
