//! Named places at which a test can end the process. Debug builds only; in others nothing is left of them.
//!
//! `COVEL_FAILPOINT=<name>:<n>` ends the process without any clean-up when the place is passed the n-th time.

/// Passes a named place.
#[inline]
pub fn pass(name: &str) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    };

    /// Looked up once; no process changes its mind.
    static ARMED: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();

    pub(super) fn pass(name: &str) {
        let armed = ARMED.get_or_init(|| {
            let text = std::env::var("COVEL_FAILPOINT").ok()?;
            let (name, passes) = text.split_once(':')?;
            Some((name.to_owned(), AtomicU64::new(passes.parse().ok()?)))
        });
        if let Some((wanted, left)) = armed
            && wanted == name
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            std::process::abort();
        }
    }
}
