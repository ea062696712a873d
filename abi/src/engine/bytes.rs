//! Bytes out of an isolate.

use rquickjs::TypedArray;

/// A copy of the bytes of a typed array; nothing when it is detached.
pub(crate) fn copy(array: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: the slice lives only in this expression; no plugin code runs while it is copied, so nothing can detach,
    // resize or write the buffer.
    unsafe { array.as_bytes() }.map(<[u8]>::to_vec).unwrap_or_default()
}
