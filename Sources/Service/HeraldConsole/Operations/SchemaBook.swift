package import HeraldJSON
import HeraldWeb

/// A type of the admin API with words about its members.
package protocol Described {
    /// Facts about members, by name; several names with spaces between them.
    static var members: [String: Fact] { get }
}

/// A type whose schema cannot be seen from how it is decoded.
package protocol CustomSchema {
    static func schema(_ book: SchemaBook) throws -> JSON
    /// A value, for types that have a member of this type.
    static var example: Self? { get }
}

extension CustomSchema {
    package static var example: Self? { nil }
}

/// A fact about a member: its description and rules, as in JSON Schema.
package struct Fact: Sendable, ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral {
    var rules: JSON.Object = [:]
    /// Whether the admin API always has the member, though its type can do without.
    var isAlways = false
    /// Whether the member is null in place of absent.
    var isNullable = false

    package init(stringLiteral words: String) { rules["description"] = .string(words) }

    package init(dictionaryLiteral rules: (String, JSON)...) {
        for (name, value) in rules { self.rules[name] = value }
    }

    /// A time in UTC with milliseconds.
    package static let time: Fact = ["format": "date-time"]
    package static let uuid: Fact = ["format": "uuid"]

    package static func time(_ words: String) -> Fact { ["format": "date-time", "description": .string(words)] }
    package static func uuid(_ words: String) -> Fact { ["format": "uuid", "description": .string(words)] }

    package static func always(_ words: String) -> Fact {
        var fact = Fact(stringLiteral: words)
        fact.isAlways = true
        return fact
    }

    package static func orNull(_ words: String) -> Fact {
        var fact = always(words)
        fact.isNullable = true
        return fact
    }
}

/// The JSON Schemas of types, as components of OpenAPI.
///
/// A type shows its members when it is decoded: the book decodes each type from nothing, and notes what it asks for.
package final class SchemaBook {
    /// A fault of a type, for its author.
    struct Unknown: Error, CustomStringConvertible {
        let type: String
        var description: String { "\(type) needs a CustomSchema, or CaseIterable for an enumeration" }
    }

    private(set) var components: JSON.Object = [:]
    /// Facts about members that their types do not have, for a test.
    private(set) var needlessFacts: Set<String> = []

    /// The schema of a type, or a reference to it.
    package func schema<Value: Decodable>(of type: Value.Type) throws -> JSON {
        if let custom = type as? any CustomSchema.Type { return try custom.schema(self) }
        return try probe(type).schema
    }

    fileprivate func probe<Value: Decodable>(_ type: Value.Type) throws -> (schema: JSON, value: Value) {
        let found: (schema: JSON, value: Any)
        switch type {
        case let custom as any CustomSchema.Type:
            guard let example = custom.example as? Value else { throw Unknown(type: "\(type)") }
            return (try custom.schema(self), example)
        case is String.Type: found = (["type": "string"], "com.example.app")
        case is Bool.Type: found = (["type": "boolean"], true)
        case is Double.Type: found = (["type": "number"], 1.0)
        case let integer as any FixedWidthInteger.Type: found = (["type": "integer"], Self.one(integer))
        case let list as any SchemaContainer.Type: found = try list.probe(self)
        case let choice as any CaseIterable.Type: found = try Self.choice(choice)
        default: return try members(of: type)
        }
        guard let value = found.value as? Value else { throw Unknown(type: "\(type)") }
        return (found.schema, value)
    }

    private static func one<Number: FixedWidthInteger>(_ type: Number.Type) -> Any { 1 as Number as Any }

    private static func choice<Choice: CaseIterable>(_ type: Choice.Type) throws -> (JSON, Any) {
        let values = type.allCases.compactMap { ($0 as? any RawRepresentable)?.rawValue as? String }
        guard let first = type.allCases.first, !values.isEmpty else { throw Unknown(type: "\(type)") }
        return (["enum": .array(values.map { .string($0) })], first)
    }

    private func members<Value: Decodable>(of type: Value.Type) throws -> (schema: JSON, value: Value) {
        let probe = SchemaProbe(self, KeySpelling(of: type))
        let value = try Value(from: probe)
        if let scalar = probe.scalar { return (scalar, value) }
        var (properties, required): (JSON.Object, [JSON]) = ([:], [])
        let facts = Self.facts(of: type)
        for name in facts.keys where probe.properties[name] == nil { needlessFacts.insert("\(type).\(name)") }
        for name in probe.order {
            guard var schema = probe.properties[name] else { continue }
            let fact = facts[name]
            if let fact { schema = .object((schema.members ?? [:]).merging(fact.rules)) }
            if fact?.isNullable == true, var rules = schema.members, let kind = rules["type"] {
                rules["type"] = [kind, "null"]
                schema = .object(rules)
            }
            properties[name] = schema
            if !probe.optional.contains(name) || fact?.isAlways == true { required.append(.string(name)) }
        }
        var object: JSON.Object = ["type": "object"]
        if !required.isEmpty { object["required"] = .array(required) }
        object["properties"] = .object(properties)
        object["additionalProperties"] = false
        let name = Self.name(of: type)
        components[name] = .object(object)
        return (["$ref": .string("#/components/schemas/\(name)")], value)
    }

    private static func facts(of type: Any.Type) -> [String: Fact] {
        var facts: [String: Fact] = [:]
        for (names, fact) in (type as? any Described.Type)?.members ?? [:] {
            for name in names.split(separator: " ") { facts[String(name)] = fact }
        }
        return facts
    }

    /// `Page.DeviceEntry`: the name of a type without its modules.
    private static func name(of type: Any.Type) -> String {
        String(reflecting: type).replacing(/Herald[A-Za-z]+\./, with: "").replacing("<", with: ".")
            .filter { $0.isLetter || $0.isNumber || $0 == "." }
    }
}

/// A type that holds others: a list, a dictionary by name, or a value that may be null.
private protocol SchemaContainer {
    static func probe(_ book: SchemaBook) throws -> (schema: JSON, value: Any)
}

extension Array: SchemaContainer where Element: Decodable {
    fileprivate static func probe(_ book: SchemaBook) throws -> (schema: JSON, value: Any) {
        let one = try book.probe(Element.self)
        return (["type": "array", "items": one.schema], [one.value])
    }
}

extension Dictionary: SchemaContainer where Key == String, Value: Decodable {
    fileprivate static func probe(_ book: SchemaBook) throws -> (schema: JSON, value: Any) {
        (["type": "object", "additionalProperties": try book.probe(Value.self).schema], [:] as Self)
    }
}

extension Optional: SchemaContainer where Wrapped: Decodable {
    fileprivate static func probe(_ book: SchemaBook) throws -> (schema: JSON, value: Any) {
        let one = try book.probe(Wrapped.self)
        guard var rules = one.schema.members, let kind = rules["type"] else {
            throw SchemaBook.Unknown(type: "\(self)")
        }
        rules["type"] = [kind, "null"]
        return (.object(rules), Self.some(one.value) as Any)
    }
}

/// A decoder that has nothing, and notes what a type asks it for.
private final class SchemaProbe: Decoder, SingleValueDecodingContainer {
    let book: SchemaBook
    let spelling: KeySpelling
    var properties: [String: JSON] = [:]
    var order: [String] = []
    /// Members that need not be there.
    var optional: Set<String> = []
    var scalar: JSON?
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    init(_ book: SchemaBook, _ spelling: KeySpelling) {
        self.book = book
        self.spelling = spelling
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Members<Key>(probe: self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw SchemaBook.Unknown(type: "a list") }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { false }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let found = try book.probe(type)
        scalar = found.schema
        return found.value
    }

    private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let probe: SchemaProbe
        var codingPath: [any CodingKey] { [] }
        var allKeys: [Key] { [] }

        /// Marks a member as optional: only what can do without it asks whether it is there.
        func contains(_ key: Key) -> Bool {
            probe.optional.insert(probe.spelling.name(key))
            return true
        }

        func decodeNil(forKey key: Key) throws -> Bool { false }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            let found = try probe.book.probe(type)
            let name = probe.spelling.name(key)
            if probe.properties.updateValue(found.schema, forKey: name) == nil { probe.order.append(name) }
            return found.value
        }

        func nestedContainer<Inner: CodingKey>(
            keyedBy type: Inner.Type,
            forKey key: Key
        ) throws -> KeyedDecodingContainer<Inner> { throw SchemaBook.Unknown(type: key.stringValue) }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw SchemaBook.Unknown(type: key.stringValue)
        }

        func superDecoder() throws -> any Decoder { probe }

        func superDecoder(forKey key: Key) throws -> any Decoder { probe }
    }
}
