//! Tool names on the wire.

use covel_model::ModelRequest;

use super::digest;

/// Longest name providers take.
const MAX_WIRE_NAME: usize = 64;

/// Providers take names of ASCII letters, digits, `_` and `-`, up to 64. Any other name is sent under one that fits
/// and read back as what it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolNames {
    renamed: Vec<(String, String)>,
}

impl ToolNames {
    /// The names of the tools a request offers.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let renamed = request.tools.iter().map(|tool| (Self::wire(&tool.name), tool.name.clone()));
        Self { renamed: renamed.filter(|(wire, name)| wire != name).collect() }
    }

    /// The name sent for a name. The same name always gives the same, so calls in the history agree with the tools.
    pub(crate) fn wire(name: &str) -> String {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=MAX_WIRE_NAME).contains(&name.len()) && name.bytes().all(fits) {
            return name.to_owned();
        }
        let kept =
            name.chars().map(|character| if character.is_ascii() && fits(character as u8) { character } else { '_' });
        let mut wire: String = kept.take(MAX_WIRE_NAME - 9).collect();
        wire.push('_');
        wire.push_str(&digest(&[name.as_bytes()], 8));
        wire
    }

    /// The name a model meant.
    pub(crate) fn meant(&self, wire: &str) -> String {
        self.renamed.iter().find(|(sent, _)| sent == wire).map_or(wire, |(_, name)| name).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use covel_model::ToolSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_do_not_fit_come_back_as_they_were() {
        let names = ["roll", "dice.roll", "dice:roll", "掷骰子", "", &"x".repeat(70)].map(str::to_owned);
        let tools =
            names.iter().map(|name| ToolSpec { name: name.clone(), description: String::new(), parameters: json!({}) });
        let request = ModelRequest { tools: tools.collect(), ..ModelRequest::default() };
        let table = ToolNames::new(&request);
        let wires: Vec<String> = names.iter().map(|name| ToolNames::wire(name)).collect();
        assert_eq!(wires[0], "roll");
        for (name, wire) in names.iter().zip(&wires) {
            assert!(
                (1..=64).contains(&wire.len())
                    && wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            );
            assert_eq!(&table.meant(wire), name);
        }
        let mut unique = wires.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), wires.len());
        assert_eq!(table.meant("never-offered"), "never-offered");
    }
}
