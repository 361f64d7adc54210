@_spi(CustomByteBufferAllocator) import NIOCore
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Allocator for the large TLS buffers of idle connections: a buffer costs only the pages that were written.
///
/// NIOSSL keeps a 32 KiB read buffer and a 16 KiB write buffer per connection; an idle device has written to the first
/// page of each. Buffers from `malloc` reuse memory of earlier connections, so after some churn all 48 KiB are resident.
/// Here every buffer begins on untouched pages and returns them when it is freed. A few freed buffers keep their first
/// page, cleared, for the next connections: a handshake writes to no other page, and mapping two pages anew is 4 % of it.
///
/// Smaller and larger buffers come from `malloc`, as do all buffers when the region is full. Custom buffer memory is an
/// SPI of swift-nio; without it, `ByteBufferAllocator()` works with more memory.
enum SparseBuffers {
    /// Allocator for listeners with many idle connections; a buffer costs one system call more than `malloc`.
    static let allocator = ByteBufferAllocator(
        allocate: { blocks?.allocate($0) ?? malloc($0) },
        reallocate: { old, oldSize, newSize in
            guard let old, let blocks, blocks.contains(old) else { return realloc(old, newSize) }
            guard newSize > BlockRegion.bytes else { return old }
            guard let new = malloc(newSize) else { return nil }
            memcpy(new, old, min(oldSize, newSize))
            blocks.release(old)
            return new
        },
        deallocate: { memory in
            if let blocks, blocks.contains(memory) { blocks.release(memory) } else { free(memory) }
        },
        copy: { target, source, count in target.copyMemory(from: source, byteCount: count) }
    )

    private static let blocks = BlockRegion()

    /// Reserved address range, divided into blocks of one size; only written pages have memory.
    private final class BlockRegion: Sendable {
        static let bytes = 32 * 1024
        /// Size of the smaller TLS buffer; smaller allocations are short-lived and belong to `malloc`.
        private static let minimumBytes = 16 * 1024
        /// Two for each of 100,000 connections: 6.25 GiB of addresses, of 128 TiB.
        private static let count = 200_000
        /// Maximum number of free blocks that keep their first page: half a MiB with pages of 4 KiB.
        private static let maximumWarm = 128

        private struct State {
            /// Free blocks whose first page is resident and zero.
            var warm: [Int32] = []
            /// Free blocks without resident memory.
            var cold: [Int32] = []
            /// Blocks from this index on were never used.
            var untouched: Int32 = 0
        }

        private let start: UInt
        private let pageBytes = Int(sysconf(Int32(_SC_PAGESIZE)))
        private let state = Mutex(State())

        /// nil if the system refuses to reserve addresses without memory.
        init?() {
            let length = Self.count * Self.bytes
            #if canImport(Glibc)
            let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
            #else
            let flags = MAP_PRIVATE | MAP_ANON | MAP_NORESERVE
            #endif
            guard let memory = mmap(nil, length, PROT_READ | PROT_WRITE, flags, -1, 0), memory != MAP_FAILED else {
                return nil
            }
            #if canImport(Glibc)
            // A huge page would make the first byte cost two megabytes.
            madvise(memory, length, MADV_NOHUGEPAGE)
            #endif
            start = UInt(bitPattern: memory)
        }

        func contains(_ memory: UnsafeMutableRawPointer) -> Bool {
            UInt(bitPattern: memory) &- start < UInt(Self.count * Self.bytes)
        }

        /// A block for an allocation; nil if its size is out of range or the region is full.
        func allocate(_ size: Int) -> UnsafeMutableRawPointer? {
            guard size >= Self.minimumBytes, size <= Self.bytes else { return nil }
            let block = state.withLock { state -> Int32? in
                if let block = state.warm.popLast() ?? state.cold.popLast() { return block }
                guard state.untouched < Self.count else { return nil }
                defer { state.untouched += 1 }
                return state.untouched
            }
            return block.flatMap { UnsafeMutableRawPointer(bitPattern: start + UInt($0) * UInt(Self.bytes)) }
        }

        func release(_ memory: UnsafeMutableRawPointer) {
            let block = Int32(truncatingIfNeeded: (UInt(bitPattern: memory) - start) / UInt(Self.bytes))
            let staysWarm = pageBytes < Self.bytes && state.withLock { $0.warm.count < Self.maximumWarm }
            // Before anybody else can take the block. macOS keeps the pages until it needs them.
            if staysWarm {
                memset(memory, 0, pageBytes)
                madvise(memory + pageBytes, Self.bytes - pageBytes, MADV_DONTNEED)
            } else {
                madvise(memory, Self.bytes, MADV_DONTNEED)
            }
            // Threads that free at the same time may exceed the maximum by a few.
            state.withLock { state in
                if staysWarm { state.warm.append(block) } else { state.cold.append(block) }
            }
        }
    }
}
