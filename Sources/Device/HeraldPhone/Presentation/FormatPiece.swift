/// A part of a format string: text, or a conversion specifier as Foundation reads it (`CFString.c`).
///
/// Format strings are read by Unicode scalars. A specifier ends with its last scalar: a combining mark or a joiner behind it
/// is text, although both are one `Character`.
enum FormatPiece: Hashable {
    /// Text; `%%` and a percent sign without a specifier are `%`.
    case literal(String)
    case specifier(FormatSpecifier)

    /// Reads a format string; `%arg` is the text's own argument in string catalogs.
    static func pieces(of format: String, readsArg: Bool = false) -> [FormatPiece] {
        var pieces: [FormatPiece] = []
        var scanner = FormatScanner(format)
        while true {
            let text = scanner.take { $0 != "%" }
            if !text.isEmpty { pieces.append(.literal(text)) }
            guard scanner.take("%") else { return pieces }
            if scanner.take("%") {
                pieces.append(.literal("%"))
            } else if let specifier = scanner.specifier(readsArg: readsArg) {
                pieces.append(.specifier(specifier))
            } else {
                pieces.append(.literal("%"))
            }
        }
    }
}

/// A conversion specifier: `%@`, `%2$lld`, `%#@files@`.
struct FormatSpecifier: Hashable {
    /// The meaning of a specifier.
    enum Kind: Hashable {
        /// An argument: `@`, or another conversion with its flags, width and length (`.2f`, `lld`).
        case argument(String)
        /// A plural variable, by its name.
        case variable(String)
        /// `%arg`: the argument of the variable whose text contains it.
        case own
    }

    /// The number of its argument, from 1, and at most ``highestPosition``; nil for the next argument.
    var position: Int?
    var kind: Kind

    static let highestPosition = 999
}

/// Reads a format string by Unicode scalars.
private struct FormatScanner {
    private var rest: Substring.UnicodeScalarView

    init(_ text: String) {
        rest = text[...].unicodeScalars
    }

    mutating func take(while belongs: (Unicode.Scalar) -> Bool) -> String {
        let taken = rest.prefix(while: belongs)
        rest = rest[taken.endIndex...]
        return String(taken)
    }

    mutating func take(_ text: String) -> Bool {
        guard rest.starts(with: text.unicodeScalars) else { return false }
        rest = rest.dropFirst(text.unicodeScalars.count)
        return true
    }

    /// Reads a specifier after its percent sign: `n$`, flags, width, precision, length, and the conversion.
    /// - Returns: nil, and nothing is taken, if there is none.
    mutating func specifier(readsArg: Bool) -> FormatSpecifier? {
        if readsArg, take("arg") { return FormatSpecifier(kind: .own) }
        var scanner = self
        var position: Int?
        var digits = scanner.take(while: Self.isDigit)
        if !digits.isEmpty, scanner.take("$") {
            position = min(Int(digits) ?? FormatSpecifier.highestPosition, FormatSpecifier.highestPosition)
            digits = ""
        }
        var modifiers =
            digits + scanner.take { "-+ #0'".unicodeScalars.contains($0) } + scanner.take(while: Self.isDigit)
        if scanner.take(".") { modifiers += "." + scanner.take(while: Self.isDigit) }
        modifiers += scanner.take { "hlqLzjt".unicodeScalars.contains($0) }
        guard let conversion = scanner.rest.popFirst(),
            "@diouxXDOUeEfFgGaAcCsSp".unicodeScalars.contains(conversion)
        else { return nil }
        defer { self = scanner }
        guard conversion == "@" else {
            return FormatSpecifier(position: position, kind: .argument(modifiers + String(conversion)))
        }
        if modifiers.unicodeScalars.contains("#"), let name = scanner.name() {
            return FormatSpecifier(position: position, kind: .variable(name))
        }
        return FormatSpecifier(position: position, kind: .argument("@"))
    }

    /// Reads the name of a variable up to the sign behind it; nil, and nothing is taken, if there is none.
    private mutating func name() -> String? {
        var scanner = self
        let name = scanner.take { $0 != "@" && $0 != "%" && !$0.properties.isWhitespace }
        guard scanner.take("@") else { return nil }
        self = scanner
        return name
    }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool {
        ("0"..."9").contains(scalar)
    }
}
