@_spi(CustomByteBufferAllocator) import NIOCore
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Memory for the large buffers that a TLS handler keeps for a connection and hardly writes to.
///
/// NIOSSL holds 32 KiB for what it reads and 16 KiB for what it writes, from the beginning of a connection to its end; a
/// device that waits has written to the first page of each. From `malloc` they come out of what other connections left,
/// so that after some coming and going all 48 KiB are in use. Here every buffer begins on pages that nobody has touched
/// and gives them back when it is freed: it costs the pages that were written. Of a few buffers that are freed the first
/// page stays, cleared, for the next connections: a handshake writes to no other, and having two pages made and taken
/// away again is 4 % of it.
///
/// Smaller buffers, larger ones, and those past the last place come from `malloc`. That buffers can have memory of their
/// own is an SPI of swift-nio: where a later version takes it away, `ByteBufferAllocator()` does the same for more memory.
enum SparseBuffers {
    /// For channels whose connections are many and idle; a buffer costs a system call more than one of `malloc`.
    static let allocator = ByteBufferAllocator(
        allocate: { places?.take($0) ?? malloc($0) },
        reallocate: { old, oldSize, newSize in
            guard let old, let places, places.contains(old) else { return realloc(old, newSize) }
            guard newSize > Places.bytes else { return old }
            guard let new = malloc(newSize) else { return nil }
            memcpy(new, old, min(oldSize, newSize))
            places.giveBack(old)
            return new
        },
        deallocate: { memory in
            if let places, places.contains(memory) { places.giveBack(memory) } else { free(memory) }
        },
        copy: { target, source, count in target.copyMemory(from: source, byteCount: count) }
    )

    private static let places = Places()

    /// A range of addresses, cut into places of one size; memory is behind those pages only that are written to.
    private final class Places: Sendable {
        static let bytes = 32 * 1024
        /// What is as large as the smaller of the two; others are used up and down, and better in `malloc`'s hands.
        private static let leastBytes = 16 * 1024
        /// Two for each of 100,000 connections: 6.25 GiB of addresses, of 128 TiB.
        private static let count = 200_000
        /// How many free places keep their first page: half a MiB, where a page has 4 KiB.
        private static let mostWarm = 128

        private struct State {
            /// Free places whose first page has memory behind it, and holds zeros.
            var warm: [Int32] = []
            /// Free places without memory.
            var cold: [Int32] = []
            /// Places from here on were never used.
            var untouched: Int32 = 0
        }

        private let start: UInt
        private let pageBytes = Int(sysconf(Int32(_SC_PAGESIZE)))
        private let state = Mutex(State())

        /// nil if the system does not give addresses without memory behind them.
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
            // A huge page would put two megabytes behind the first byte.
            madvise(memory, length, MADV_NOHUGEPAGE)
            #endif
            start = UInt(bitPattern: memory)
        }

        func contains(_ memory: UnsafeMutableRawPointer) -> Bool {
            UInt(bitPattern: memory) &- start < UInt(Self.count * Self.bytes)
        }

        /// A place for so many bytes; nil if they are not for here, or there is none.
        func take(_ size: Int) -> UnsafeMutableRawPointer? {
            guard size >= Self.leastBytes, size <= Self.bytes else { return nil }
            let place = state.withLock { state -> Int32? in
                if let place = state.warm.popLast() ?? state.cold.popLast() { return place }
                guard state.untouched < Self.count else { return nil }
                defer { state.untouched += 1 }
                return state.untouched
            }
            return place.flatMap { UnsafeMutableRawPointer(bitPattern: start + UInt($0) * UInt(Self.bytes)) }
        }

        func giveBack(_ memory: UnsafeMutableRawPointer) {
            let place = Int32(truncatingIfNeeded: (UInt(bitPattern: memory) - start) / UInt(Self.bytes))
            let staysWarm = pageBytes < Self.bytes && state.withLock { $0.warm.count < Self.mostWarm }
            // Before somebody else has the place. macOS keeps the pages until it wants them.
            if staysWarm {
                memset(memory, 0, pageBytes)
                madvise(memory + pageBytes, Self.bytes - pageBytes, MADV_DONTNEED)
            } else {
                madvise(memory, Self.bytes, MADV_DONTNEED)
            }
            // Threads that give back at once may make it a few more than there were to be.
            state.withLock { state in
                if staysWarm { state.warm.append(place) } else { state.cold.append(place) }
            }
        }
    }
}
