//! Criterion benches and their figures.
