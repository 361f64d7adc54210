/// A format string of a bundle: `%@` takes the next argument, `%2$@` the second, `%%` is a percent sign.
///
/// Arguments of notifications are texts. Other conversions of C (`%d`, `%.2f`) show the text of their argument, and are
/// listed in ``foreignConversions``.
public struct FormatString: Hashable, Sendable {
    /// The longest result, in bytes; it is cut there.
    public static let maximumBytes = 64 * 1024

    private enum Piece: Hashable {
        case literal(String)
        /// The index from 0.
        case argument(Int)
    }

    private var pieces: [Piece] = []
    /// The number of arguments that it takes.
    public private(set) var argumentCount = 0
    /// The conversions other than `%@`, as written.
    public private(set) var foreignConversions: [String] = []
    /// Whether it has both `%@` and `%1$@`, which is probably a mistake.
    public var mixesOrders: Bool { sequential > 0 && hasPositions }

    private var sequential = 0
    private var hasPositions = false

    /// Parses a format string.
    public init(_ text: String) {
        var rest = Substring(text)
        while let percent = rest.firstIndex(of: "%") {
            add(literal: rest[..<percent])
            rest = rest[percent...].dropFirst()
            conversion(&rest)
        }
        add(literal: rest)
    }

    /// The text with its arguments.
    ///
    /// Missing arguments show as nothing; surplus ones are ignored.
    public func filled(with arguments: [String]) -> String {
        var text = ""
        var room = Self.maximumBytes
        for piece in pieces {
            let more =
                switch piece {
                case .literal(let literal): literal
                case .argument(let index): arguments.indices.contains(index) ? arguments[index] : ""
                }
            guard more.utf8.count <= room else { break }
            room -= more.utf8.count
            text += more
        }
        return text
    }

    private mutating func add(literal: Substring) {
        if !literal.isEmpty { pieces.append(.literal(String(literal))) }
    }

    /// Parses a conversion after the percent sign: `n$`, flags, width, precision, length, and the conversion itself.
    private mutating func conversion(_ rest: inout Substring) {
        if rest.first == "%" {
            rest = rest.dropFirst()
            return pieces.append(.literal("%"))
        }
        var cursor = rest
        var position: Int?
        let digits = cursor.prefix { $0.isASCII && $0.isNumber }
        if !digits.isEmpty, cursor.dropFirst(digits.count).first == "$" {
            cursor = cursor.dropFirst(digits.count + 1)
            // A position above 999 counts as a missing argument.
            position = min(Int(digits) ?? 999, 999)
        }
        if cursor.first == "#", let end = cursor.dropFirst(2).firstIndex(of: "@") {
            // `%#@files@`: a plural of a .stringsdict that does not exist; existing ones were replaced before.
            return take(position, spelling: "", &rest, behind: cursor[...end])
        }
        cursor = cursor.drop { "-+ #0'".contains($0) }
        cursor = cursor.drop { $0.isASCII && $0.isNumber }
        if cursor.first == "." { cursor = cursor.dropFirst().drop { $0.isASCII && $0.isNumber } }
        cursor = cursor.drop { "hlqLzjt".contains($0) }
        guard let conversion = cursor.first, "@diouxXDOUeEfFgGaAcCsSp".contains(conversion) else {
            return pieces.append(.literal("%"))
        }
        let spelling = rest[..<cursor.index(after: cursor.startIndex)]
        take(position, spelling: conversion == "@" ? "" : "%" + spelling, &rest, behind: spelling)
    }

    private mutating func take(_ position: Int?, spelling: String, _ rest: inout Substring, behind piece: Substring) {
        if !spelling.isEmpty { foreignConversions.append(spelling) }
        if let position {
            hasPositions = true
            pieces.append(.argument(position - 1))
            argumentCount = max(argumentCount, position)
        } else {
            pieces.append(.argument(sequential))
            sequential += 1
            argumentCount = max(argumentCount, sequential)
        }
        rest = rest[piece.endIndex...]
    }
}
