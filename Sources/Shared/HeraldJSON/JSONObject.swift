extension JSON {
    /// The members of an object, in the order in which they were written.
    ///
    /// Names are equal if their code units are (RFC 8259 §8.3): `é` in one code point and `é` in two are two names. Two objects
    /// are equal if they have the same members in any order.
    public struct Object: Sendable {
        private var values: [Name: JSON] = [:]
        private var order: [Name] = []

        /// Creates an object without members.
        public init() {}

        /// The value of a member; nil if there is none.
        ///
        /// A new member is appended. Setting nil removes the member.
        public subscript(name: String) -> JSON? {
            get { values[Name(name)] }
            set {
                let name = Name(name)
                if let newValue {
                    if values.updateValue(newValue, forKey: name) == nil { order.append(name) }
                } else if values.removeValue(forKey: name) != nil {
                    order.removeAll { $0 == name }
                }
            }
        }

        /// The number of members.
        public var count: Int { order.count }

        /// Whether there are no members.
        public var isEmpty: Bool { order.isEmpty }

        /// The names of the members in order.
        public var names: [String] { order.map(\.text) }
    }

    /// A name that is compared by code units, where `String` compares canonically equivalent texts as equal.
    private struct Name: Hashable {
        let text: String

        init(_ text: String) {
            var text = text
            text.makeContiguousUTF8()
            self.text = text
        }

        static func == (left: Name, right: Name) -> Bool {
            left.text.utf8.elementsEqual(right.text.utf8)
        }

        func hash(into hasher: inout Hasher) {
            var text = text
            text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }
}

extension JSON.Object: Hashable {
    /// Whether both have the same members, in any order.
    public static func == (left: JSON.Object, right: JSON.Object) -> Bool {
        left.values == right.values
    }

    /// Hashes the members.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(values)
    }
}

extension JSON.Object: Sequence {
    /// Iterates over the members in order.
    public func makeIterator() -> AnyIterator<(name: String, value: JSON)> {
        var names = order.makeIterator()
        let values = values
        return AnyIterator {
            guard let name = names.next(), let value = values[name] else { return nil }
            return (name.text, value)
        }
    }
}

extension JSON.Object {
    /// Reads one whole text; nil if it is not JSON, or not an object.
    public init?(_ bytes: [UInt8], rules: JSON.Rules = .strict) {
        guard let members = (try? JSON(bytes, rules: rules))?.members else { return nil }
        self = members
    }

    /// The members of both objects; of those with the same name, the other's counts.
    public func merging(_ other: JSON.Object) -> JSON.Object {
        var merged = self
        for (name, value) in other { merged[name] = value }
        return merged
    }
}

extension JSON.Object: Codable {
    /// Decodes an object as ``JSON`` is decoded.
    public init(from decoder: any Decoder) throws {
        guard let members = try JSON(from: decoder).members else {
            let context = DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "expected an object")
            throw DecodingError.typeMismatch(JSON.Object.self, context)
        }
        self = members
    }

    /// Encodes the object as ``JSON`` is encoded.
    public func encode(to encoder: any Encoder) throws {
        try JSON.object(self).encode(to: encoder)
    }
}

extension JSON.Object: ExpressibleByDictionaryLiteral {
    /// Creates an object; of members with the same name, the last counts.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        for (name, value) in elements { self[name] = value }
    }
}
