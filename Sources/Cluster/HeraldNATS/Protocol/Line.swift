/// Control line: the name of an operation, and fields between spaces.
struct Line {
    enum Operation {
        case info
        case message
        case headedMessage
        case ping
        case pong
        case ok
        case error
    }

    /// Places of at most five fields.
    struct Fields {
        private(set) var count = 0
        private var places: (Range<Int>, Range<Int>, Range<Int>, Range<Int>, Range<Int>) = (
            0..<0, 0..<0, 0..<0, 0..<0, 0..<0
        )

        subscript(place: Int) -> Range<Int> {
            switch place {
            case 0: places.0
            case 1: places.1
            case 2: places.2
            case 3: places.3
            default: places.4
            }
        }

        /// Whether there was room.
        mutating func append(_ field: Range<Int>) -> Bool {
            switch count {
            case 0: places.0 = field
            case 1: places.1 = field
            case 2: places.2 = field
            case 3: places.3 = field
            case 4: places.4 = field
            default: return false
            }
            count += 1
            return true
        }
    }

    /// The operation; nil if it is unknown.
    let operation: Operation?
    /// Length of the operation's name.
    let nameBytes: Int

    /// - Parameter bytes: The line, without its line feed.
    init(_ bytes: UnsafeRawBufferPointer) {
        var end = 0
        while end < bytes.count, !Self.isSpace(bytes[end]) { end += 1 }
        nameBytes = end
        operation = Self.operation(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    }

    /// The fields after the name; nil if there are more than five.
    static func fields(_ bytes: UnsafeRawBufferPointer) -> Fields? {
        var fields = Fields()
        var place = 0
        while place < bytes.count, !isSpace(bytes[place]) { place += 1 }
        while true {
            while place < bytes.count, isSpace(bytes[place]) { place += 1 }
            guard place < bytes.count else { return fields }
            let begin = place
            while place < bytes.count, !isSpace(bytes[place]) { place += 1 }
            guard fields.append(begin..<place) else { return nil }
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0D
    }

    private static func operation(_ name: UnsafeRawBufferPointer) -> Operation? {
        func isNamed(_ text: StaticString) -> Bool {
            name.elementsEqual(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) {
                $0 == $1 || $0 & 0xDF == $1
            }
        }
        switch name.count {
        case 3 where isNamed("MSG"): return .message
        case 3 where isNamed("+OK"): return .ok
        case 4 where isNamed("HMSG"): return .headedMessage
        case 4 where isNamed("INFO"): return .info
        case 4 where isNamed("PING"): return .ping
        case 4 where isNamed("PONG"): return .pong
        case 4 where isNamed("-ERR"): return .error
        default: return nil
        }
    }
}
