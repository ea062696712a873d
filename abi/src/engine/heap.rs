//! The memory of one isolate. The engine's own limit cannot be asked whether it was hit; this one can, so a call that ran
//! out of memory is told apart from one that threw something that looks like it.

use std::{cell::Cell, rc::Rc};

use rquickjs::allocator::{Allocator, RustAllocator};

/// What an isolate uses and may use, in bytes.
#[derive(Debug)]
pub(crate) struct Gauge {
    used: Cell<usize>,
    limit: usize,
    refused: Cell<bool>,
}

impl Gauge {
    pub(crate) fn new(limit: usize) -> Rc<Self> {
        Rc::new(Self { used: Cell::new(0), limit, refused: Cell::new(false) })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.get()
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Was memory refused since this was last asked to forget?
    pub(crate) fn refused(&self) -> bool {
        self.refused.get()
    }

    pub(crate) fn forget_refusal(&self) {
        self.refused.set(false);
    }

    fn admits(&self, more: usize) -> bool {
        let fits = self.used.get().checked_add(more).is_some_and(|total| total <= self.limit);
        if !fits {
            self.refused.set(true);
        }
        fits
    }

    fn add(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_add(bytes));
    }

    fn remove(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}

/// Gives memory of the process while the gauge admits it.
pub(crate) struct Limited(pub(crate) Rc<Gauge>);

// SAFETY: every block comes from and goes back to `RustAllocator`, which fulfils the trait's contract; this type only
// answers null instead of asking it, which the contract allows, and counts.
unsafe impl Allocator for Limited {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.admits(size) {
            return std::ptr::null_mut();
        }
        let block = RustAllocator.alloc(size);
        self.count(block)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !count.checked_mul(size).is_some_and(|total| self.0.admits(total)) {
            return std::ptr::null_mut();
        }
        let block = RustAllocator.calloc(count, size);
        self.count(block)
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        // SAFETY: the engine gives back a block this allocator gave out, once.
        unsafe {
            self.0.remove(RustAllocator::usable_size(ptr));
            RustAllocator.dealloc(ptr);
        }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        if ptr.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: the engine names a live block of this allocator; it stays valid when null is answered.
        unsafe {
            let old_size = RustAllocator::usable_size(ptr);
            if new_size > old_size && !self.0.admits(new_size - old_size) {
                return std::ptr::null_mut();
            }
            let block = RustAllocator.realloc(ptr, new_size);
            if block.is_null() {
                return block;
            }
            self.0.remove(old_size);
            self.count(block)
        }
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        // SAFETY: the engine names a live block of this allocator.
        unsafe { RustAllocator::usable_size(ptr) }
    }
}

impl Limited {
    fn count(&self, block: *mut u8) -> *mut u8 {
        if !block.is_null() {
            // SAFETY: `RustAllocator` just gave out this block.
            self.0.add(unsafe { RustAllocator::usable_size(block) });
        }
        block
    }
}
