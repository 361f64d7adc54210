/// A text of a bundle with places for arguments: `%@` takes the next one, `%2$@` the second, `%%` is a percent sign.
///
/// Arguments of notifications are texts, so that other conversions of C (`%d`, `%.2f`) have no meaning; they are shown
/// as the text of their argument, and ``foreignConversions`` names them.
public struct FormatString: Hashable, Sendable {
    /// The longest text that is made, in bytes; it is cut there.
    public static let maximumBytes = 64 * 1024

    private enum Piece: Hashable {
        case literal(String)
        /// Counted from 0.
        case argument(Int)
    }

    private var pieces: [Piece] = []
    /// How many arguments it takes.
    public private(set) var argumentCount = 0
    /// The conversions other than `%@`, as they are written.
    public private(set) var foreignConversions: [String] = []
    /// Whether it has both `%@` and `%1$@`; the former count for themselves, which nobody means.
    public var mixesOrders: Bool { sequential > 0 && hasPositions }

    private var sequential = 0
    private var hasPositions = false

    /// Reads the text.
    public init(_ text: String) {
        var rest = Substring(text)
        while let percent = rest.firstIndex(of: "%") {
            add(literal: rest[..<percent])
            rest = rest[percent...].dropFirst()
            conversion(&rest)
        }
        add(literal: rest)
    }

    /// The text with its arguments; one that is missing shows as nothing, and surplus ones are not shown.
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

    /// Reads what follows a percent sign: `n$`, flags, width, precision, length, and the conversion's letter.
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
            // Nobody passes a thousand arguments; what says so is taken as one that is missing.
            position = min(Int(digits) ?? 999, 999)
        }
        if cursor.first == "#", let end = cursor.dropFirst(2).firstIndex(of: "@") {
            // `%#@files@`: a plural of a .stringsdict, which was put in place where there is one.
            return take(position, spelling: "", &rest, behind: cursor[...end])
        }
        cursor = cursor.drop { "-+ #0'".contains($0) }
        cursor = cursor.drop { $0.isASCII && $0.isNumber }
        if cursor.first == "." { cursor = cursor.dropFirst().drop { $0.isASCII && $0.isNumber } }
        cursor = cursor.drop { "hlqLzjt".contains($0) }
        guard let letter = cursor.first, "@diouxXDOUeEfFgGaAcCsSp".contains(letter) else {
            return pieces.append(.literal("%"))
        }
        let spelling = rest[..<cursor.index(after: cursor.startIndex)]
        take(position, spelling: letter == "@" ? "" : "%" + spelling, &rest, behind: spelling)
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
