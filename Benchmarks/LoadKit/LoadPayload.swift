#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A moment of the machine's monotonic clock, which all processes share.
package struct MonotonicTime: Sendable {
    package let nanoseconds: UInt64

    package static var now: MonotonicTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    }

    package func seconds(since earlier: MonotonicTime) -> Double {
        Double(nanoseconds - earlier.nanoseconds) / 1e9
    }
}

/// A payload that says when it was sent: `{"t":1234567890123456789,"aps":{"alert":"xxxx…"}}`.
package enum LoadPayload {
    private static let head = Array("{\"t\":1".utf8)
    private static let middle = Array(",\"aps\":{\"alert\":\"".utf8)
    private static let tail = Array("\"}}".utf8)
    private static let digits = 18

    package static func make(bytes: Int) -> [UInt8] {
        var payload = head
        payload.reserveCapacity(bytes)
        let now = MonotonicTime.now.nanoseconds
        var divisor: UInt64 = 100_000_000_000_000_000
        for _ in 0..<digits {
            payload.append(UInt8(ascii: "0") + UInt8(now / divisor % 10))
            divisor /= 10
        }
        payload += middle
        let rest = bytes - payload.count - tail.count
        if rest > 0 { payload += repeatElement(UInt8(ascii: "x"), count: rest) }
        return payload + tail
    }

    /// When a payload was sent; nil if it does not say.
    package static func sent(_ payload: [UInt8]) -> UInt64? {
        guard payload.count > head.count + digits, payload.starts(with: head) else { return nil }
        return payload[head.count..<(head.count + digits)].reduce(0 as UInt64?) { value, digit in
            guard let value, (0x30...0x39).contains(digit) else { return nil }
            return value * 10 + UInt64(digit - 0x30)
        }
    }
}
