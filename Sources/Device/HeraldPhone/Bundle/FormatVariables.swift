/// Replaces the plural variables of a format string (`%#@files@`) by their texts, and the variables in these, too.
///
/// As Foundation does it ("Foundation Release Notes for OS X v10.9", and `CFString.c`), every text sees all arguments. In the
/// text of a variable, the first specifier without a number takes the variable's own argument, and the next one the argument
/// after it. So `%#@people@` with the text `%d people in %#@rooms@` becomes `%1$@ people in %2$@ rooms`.
struct FormatVariables {
    /// A variable with its most general text.
    struct Variable {
        var text: String
        /// The number of its argument, from 1 (`argNum` of a catalog); nil: as in the format string.
        var position: Int?
    }

    /// How deep texts may be nested.
    private static let maximumDepth = 16
    /// How many variables a format string may have, those in texts of variables included.
    private static let maximumVariables = 256

    let find: (String) -> Variable?
    /// Whether `%arg` is the text's own argument.
    let readsArg: Bool
    /// The faults of the format string, in words that follow its key.
    private(set) var faults: [String] = []
    private var room = FormatString.maximumBytes
    private var count = 0

    private init(readsArg: Bool, find: @escaping (String) -> Variable?) {
        self.find = find
        self.readsArg = readsArg
    }

    /// The text for a format string.
    ///
    /// A variable that cannot be replaced stands for its argument, and is a fault.
    static func replaced(
        in format: String,
        readsArg: Bool = false,
        find: @escaping (String) -> Variable?
    ) -> LocalizedText {
        let pieces = FormatPiece.pieces(of: format, readsArg: readsArg)
        let hasVariables = pieces.contains { piece in
            guard case .specifier(let specifier) = piece else { return false }
            if case .argument = specifier.kind { return false }
            return true
        }
        guard hasVariables else { return LocalizedText(format: format, isPlural: true) }
        var variables = FormatVariables(readsArg: readsArg, find: find)
        let replaced = variables.replaced(pieces, own: nil, inside: [])
        return LocalizedText(format: replaced, isPlural: true, faults: variables.faults)
    }

    /// Replaces the variables in a text: the format string itself, or that of the variable whose argument has the number `own`.
    private mutating func replaced(_ pieces: [FormatPiece], own: Int?, inside names: [String]) -> String {
        var text = ""
        var next = own ?? 1
        var (isNumbered, isSequential) = (false, false)
        for piece in pieces {
            let specifier: FormatSpecifier
            switch piece {
            case .literal(let literal):
                text += bounded(literal == "%" ? "%%" : literal)
                continue
            case .specifier(let found): specifier = found
            }
            var variable: Variable?
            if case .variable(let name) = specifier.kind { variable = find(name) }
            let position: Int
            if specifier.kind == .own {
                position = own ?? 1
                next = max(next, position + 1)
            } else if let number = variable?.position ?? specifier.position {
                position = min(max(number, 0), FormatSpecifier.highestPosition)
                isNumbered = isNumbered || variable?.position == nil
            } else {
                position = min(next, FormatSpecifier.highestPosition)
                next += 1
                isSequential = true
            }
            if case .variable(let name) = specifier.kind, let variable = usable(variable, name, inside: names) {
                let pieces = FormatPiece.pieces(of: variable.text, readsArg: readsArg)
                text += replaced(pieces, own: position, inside: names + [name])
            } else if case .argument(let conversion) = specifier.kind, position != own {
                text += bounded("%\(position)$\(conversion)")
            } else {
                // The definition of a variable says which type its own argument has.
                text += bounded("%\(position)$@")
            }
        }
        if own == nil, isNumbered, isSequential { report("mixes %@ and %1$@: number all of them") }
        return text
    }

    /// A variable whose text can be put here; nil if it cannot.
    private mutating func usable(_ variable: Variable?, _ name: String, inside names: [String]) -> Variable? {
        guard let variable else {
            report("has no form other for its variable \(name)")
            return nil
        }
        guard !names.contains(name) else {
            report("uses its variable \(name) within itself")
            return nil
        }
        guard names.count < Self.maximumDepth else {
            report("nests variables deeper than \(Self.maximumDepth) levels")
            return nil
        }
        guard count < Self.maximumVariables else {
            report("has more than \(Self.maximumVariables) variables")
            return nil
        }
        guard variable.text.utf8.count <= room else {
            reportLength()
            return nil
        }
        count += 1
        return variable
    }

    private mutating func bounded(_ text: String) -> String {
        guard text.utf8.count <= room else {
            reportLength()
            room = 0
            return ""
        }
        room -= text.utf8.count
        return text
    }

    private mutating func reportLength() {
        report("is longer than \(FormatString.maximumBytes) bytes with its variables")
    }

    private mutating func report(_ fault: String) {
        if !faults.contains(fault) { faults.append(fault) }
    }
}
