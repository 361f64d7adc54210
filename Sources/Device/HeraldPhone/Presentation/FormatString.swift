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
        for piece in FormatPiece.pieces(of: text) {
            switch piece {
            case .literal(let literal): pieces.append(.literal(literal))
            case .specifier(let specifier): take(specifier)
            }
        }
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

    /// Takes the argument of a specifier.
    ///
    /// A variable takes one, too. Those that have texts were replaced before.
    private mutating func take(_ specifier: FormatSpecifier) {
        if case .argument(let conversion) = specifier.kind, conversion != "@" {
            foreignConversions.append("%" + (specifier.position.map { "\($0)$" } ?? "") + conversion)
        }
        if let position = specifier.position {
            hasPositions = true
            pieces.append(.argument(position - 1))
            argumentCount = max(argumentCount, position)
        } else {
            pieces.append(.argument(sequential))
            sequential += 1
            argumentCount = max(argumentCount, sequential)
        }
    }
}
