import NIOCore

/// Header fields of a message: the lines of the wire, without the status line before and the empty line after them.
///
/// Names and values stay bytes. A look-up compares them and makes no strings, because a reader asks for two or three of them.
/// Names are compared exactly, as servers and clients of NATS do.
package struct NATSHeaders: Hashable, Sendable {
    /// The lines, each `Name: value` and CRLF.
    private(set) var lines: ByteBuffer

    package init() {
        lines = ByteBuffer()
    }

    /// Header lines from the wire.
    init(lines: ByteBuffer) {
        self.lines = lines
    }

    /// Appends a field.
    /// - Throws: ``NATSError/Kind/badMessage`` for a name or value that would break the lines.
    package mutating func append(_ name: String, _ value: String) throws(NATSError) {
        let isName = name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
        guard !name.isEmpty, isName else {
            throw NATSError(.badMessage, "\"\(name)\" is not the name of a header field")
        }
        guard value.utf8.allSatisfy({ $0 != 0x0D && $0 != 0x0A }) else {
            throw NATSError(.badMessage, "the value of the header field \(name) contains a line break")
        }
        lines.writeString(name)
        lines.writeStaticString(": ")
        lines.writeString(value)
        lines.writeStaticString("\r\n")
    }

    /// The first value of a field; nil if the field is missing.
    package func value(_ name: StaticString) -> String? {
        withValue(name) { String(decoding: $0, as: UTF8.self) }
    }

    /// The first value of a field as a decimal number; nil if the field is missing or is none.
    package func number(_ name: StaticString) -> UInt64? {
        withValue(name) { Decimal.read($0) } ?? nil
    }

    /// The last value of a field: a server appends its own fields to those of a stored message.
    package func lastValue(_ name: StaticString) -> String? {
        withValue(name, isLast: true) { String(decoding: $0, as: UTF8.self) }
    }

    func lastNumber(_ name: StaticString) -> UInt64? {
        withValue(name, isLast: true) { Decimal.read($0) } ?? nil
    }

    /// The condition under which a stream took the message: the sequence of its subject's newest message then, 0 for none; nil
    /// if there was no condition.
    ///
    /// Only the first line counts, as this client writes it: the server has surely read it there. A condition on another subject
    /// is none.
    package var expectedLastSubjectSequence: UInt64? {
        lines.withUnsafeReadableBytes { bytes -> UInt64? in
            let name = OutgoingPublish.expectedName
            let isFirst = name.withUTF8Buffer { bytes.starts(with: $0) }
            guard isFirst, let end = bytes.firstIndex(of: 0x0D) else { return nil }
            let digits = UnsafeRawBufferPointer(rebasing: bytes[min(name.utf8CodeUnitCount, end)..<end])
            guard value("Nats-Expected-Last-Subject-Sequence-Subject") == nil else { return nil }
            return Decimal.read(digits)
        }
    }

    /// All fields in their order, for those who pass them on.
    package var fields: [(name: String, value: String)] {
        lines.withUnsafeReadableBytes { bytes in
            var fields: [(name: String, value: String)] = []
            var rest = Lines(bytes)
            while let line = rest.next() {
                fields.append((String(decoding: line.name, as: UTF8.self), String(decoding: line.value, as: UTF8.self)))
            }
            return fields
        }
    }

    private func withValue<Value>(
        _ name: StaticString,
        isLast: Bool = false,
        _ body: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        lines.withUnsafeReadableBytes { bytes in
            let wanted = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
            var rest = Lines(bytes)
            var value: UnsafeRawBufferPointer?
            while let line = rest.next() {
                guard line.name.count == wanted.count, line.name.elementsEqual(wanted) else { continue }
                value = line.value
                if !isLast { break }
            }
            return value.map(body)
        }
    }
}

/// Reader of the lines of a header.
///
/// A line without a colon is skipped.
private struct Lines {
    private let bytes: UnsafeRawBufferPointer
    private var place = 0

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    mutating func next() -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer)? {
        while place < bytes.count {
            let start = place
            var end = start
            var colon: Int?
            while end < bytes.count, bytes[end] != 0x0A {
                if colon == nil, bytes[end] == UInt8(ascii: ":") { colon = end }
                end += 1
            }
            place = min(end + 1, bytes.count)
            guard let colon else { continue }
            var first = colon + 1
            var last = end
            while last > first, bytes[last - 1] == 0x0D || bytes[last - 1] == 0x20 { last -= 1 }
            while first < last, bytes[first] == 0x20 { first += 1 }
            return (
                UnsafeRawBufferPointer(rebasing: bytes[start..<colon]),
                UnsafeRawBufferPointer(rebasing: bytes[first..<last])
            )
        }
        return nil
    }
}
