//! The `covel` program.
fn main() {}
