//! What an execution has written so far, over what is committed.
//!
//! A persistent ordered map: taking a layer's view is one pointer copy, so every runtime of a layer reads exactly
//! the writes of completed, committable runtimes of earlier layers, plus its own. CTX-3

use std::sync::Arc;

use covel_graph::{Json, RuntimeIx};
use imbl::OrdMap;

/// A plugin-data record's name, the owner as an index into the plan's plugins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataKey {
    /// Owner.
    pub plugin: u32,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Key.
    pub key: Arc<str>,
}

/// The newest uncommitted state of a record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Value, or none when deleted.
    pub value: Option<Json>,
    /// Who wrote it last.
    pub producer: RuntimeIx,
    /// Place in the order of writes.
    pub sequence: u64,
    /// It was staged by a write service, so it may come to nothing though its producer commits. WSV-10
    pub staged: bool,
}

/// One domain write of a runtime, in its own order.
#[derive(Clone, Debug, PartialEq)]
pub struct DataWrite {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Key.
    pub key: Arc<str>,
    /// What.
    pub op: DataOp,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub enum DataOp {
    /// Puts a value.
    Set(Json),
    /// Removes the record.
    Delete,
    /// Applies operations to the newest value at commit. DAT-1
    Update(Json),
}

/// A view of uncommitted writes. Cloning costs a pointer.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    entries: OrdMap<DataKey, Entry>,
    next: u64,
}

impl Overlay {
    /// The uncommitted state of a record, if any runtime wrote it.
    pub fn get(&self, key: &DataKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All uncommitted records of a namespace, by key.
    pub fn namespace<'a>(
        &'a self,
        plugin: u32,
        namespace: &'a Arc<str>,
    ) -> impl Iterator<Item = (&'a DataKey, &'a Entry)> {
        let first = DataKey { plugin, namespace: Arc::clone(namespace), key: "".into() };
        self.entries.range(first..).take_while(move |(key, _)| key.plugin == plugin && key.namespace == *namespace)
    }

    /// Records a write.
    pub fn put(&mut self, key: DataKey, value: Option<Json>, producer: RuntimeIx) {
        self.insert(key, value, producer, false);
    }

    /// Records a write staged by a write service on the producer's result.
    pub fn put_staged(&mut self, key: DataKey, value: Option<Json>, producer: RuntimeIx) {
        self.insert(key, value, producer, true);
    }

    fn insert(&mut self, key: DataKey, value: Option<Json>, producer: RuntimeIx, staged: bool) {
        let sequence = self.next;
        self.next += 1;
        self.entries.insert(key, Entry { value, producer, sequence, staged });
    }

    /// Puts back what a record was before.
    pub fn restore(&mut self, key: DataKey, before: Option<Entry>) {
        match before {
            Some(entry) => self.entries.insert(key, entry),
            None => self.entries.remove(&key),
        };
    }

    /// Is nothing written?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Lays uncommitted records over committed ones: deleted keys go, changed keys keep their place, new keys follow
/// in the order in which they were written. CTX-3
pub fn overlay_rows<'a, R: Clone>(
    committed: Vec<(String, R)>,
    overlaid: impl Iterator<Item = (&'a DataKey, &'a Entry)>,
    mut make: impl FnMut(&str, &Json, Option<&R>) -> R,
) -> Vec<(String, R)> {
    let mut changes: Vec<(&DataKey, &Entry)> = overlaid.collect();
    if changes.is_empty() {
        return committed;
    }
    changes.sort_by_key(|(_, entry)| entry.sequence);
    let mut by_key: std::collections::HashMap<&str, &Entry> =
        changes.iter().map(|(key, entry)| (&*key.key, *entry)).collect();
    let mut rows = Vec::with_capacity(committed.len() + changes.len());
    for (key, row) in committed {
        match by_key.remove(key.as_str()) {
            None => rows.push((key, row)),
            Some(Entry { value: Some(value), .. }) => {
                let row = make(&key, value, Some(&row));
                rows.push((key, row));
            }
            Some(_) => {}
        }
    }
    for (key, entry) in changes {
        if let (true, Some(value)) = (by_key.contains_key(&*key.key), &entry.value) {
            rows.push((key.key.to_string(), make(&key.key, value, None)));
        }
    }
    rows
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(name: &str) -> DataKey {
        DataKey { plugin: 0, namespace: "n".into(), key: name.into() }
    }

    /// Covers: CTX-3
    #[test]
    fn lists_drop_deleted_keys_and_append_new_ones_in_write_order() {
        let mut overlay = Overlay::default();
        let mut put = |name: &str, value: Option<i32>| {
            overlay.put(key(name), value.map(|v| Json::from_value(v.into())), RuntimeIx(0));
        };
        put("z", Some(1));
        put("b", None);
        put("a2", Some(2));
        put("c", Some(30));
        let committed = vec![("b".to_owned(), 2), ("c".to_owned(), 3), ("d".to_owned(), 4)];
        let namespace: Arc<str> = "n".into();
        let rows = overlay_rows(committed, overlay.namespace(0, &namespace), |_, value, _| {
            i32::try_from(value.value().as_i64().unwrap()).unwrap()
        });
        assert_eq!(rows, [("c".to_owned(), 30), ("d".to_owned(), 4), ("z".to_owned(), 1), ("a2".to_owned(), 2)]);
    }

    #[test]
    fn a_taken_view_does_not_see_later_writes() {
        let mut overlay = Overlay::default();
        overlay.put(key("a"), Some(Json::null()), RuntimeIx(0));
        let view = overlay.clone();
        overlay.put(key("b"), Some(Json::null()), RuntimeIx(1));
        assert!(view.get(&key("b")).is_none());
        assert!(overlay.get(&key("b")).is_some());
    }

    #[test]
    fn namespaces_do_not_leak_into_each_other() {
        let mut overlay = Overlay::default();
        for (plugin, namespace) in [(0, "n"), (0, "na"), (1, "n"), (0, "m")] {
            overlay.put(
                DataKey { plugin, namespace: namespace.into(), key: "k".into() },
                Some(Json::null()),
                RuntimeIx(0),
            );
        }
        let namespace: Arc<str> = "n".into();
        assert_eq!(overlay.namespace(0, &namespace).count(), 1);
    }
}
