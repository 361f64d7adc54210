extension JSON: ExpressibleByStringLiteral {
    /// Creates a string.
    public init(stringLiteral text: String) { self = .string(text) }
}

extension JSON: ExpressibleByIntegerLiteral {
    /// Creates the number of an integer literal.
    public init(integerLiteral value: Int) { self = .number(JSON.Number(value)) }
}

extension JSON: ExpressibleByBooleanLiteral {
    /// Creates a truth value.
    public init(booleanLiteral truth: Bool) { self = .boolean(truth) }
}

extension JSON: ExpressibleByArrayLiteral {
    /// Creates an array.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
}

extension JSON: ExpressibleByDictionaryLiteral {
    /// Creates an object with the members in their order; the last of those with one name counts.
    public init(dictionaryLiteral members: (String, JSON)...) {
        var object = Object()
        for (name, value) in members { object[name] = value }
        self = .object(object)
    }
}
