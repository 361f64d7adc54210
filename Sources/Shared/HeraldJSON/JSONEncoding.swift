extension JSON {
    /// Encodes a value as a tree; a member of the type ``JSON`` becomes a part of it with every digit.
    ///
    /// The members of other types are sorted by name, so that texts can be compared.
    /// - Throws: `EncodingError` for a `Double` that is infinite or not a number, or the error of the type.
    public init(encoding value: some Encodable) throws {
        let node = Node()
        try node.encode(value, at: [])
        self = node.json
    }

    /// Encodes a value as a text on one line.
    /// - Throws: as ``JSON/init(encoding:)``.
    public static func encode(_ value: some Encodable) throws -> [UInt8] {
        try JSON(encoding: value).bytes
    }
}

extension JSON: Encodable {
    /// Encodes the value as it is.
    ///
    /// Other encoders do not take the text of numbers, so that digits would be lost. Use ``JSON/init(encoding:)``.
    public func encode(to encoder: any Encoder) throws {
        guard let encoder = encoder as? TreeEncoder else {
            let reason = "a value of the type JSON is encoded with JSON.encode, which keeps every digit"
            throw EncodingError.invalidValue(self, .init(codingPath: encoder.codingPath, debugDescription: reason))
        }
        encoder.node.content = .value(self)
    }
}

/// A value of a tree that grows.
private final class Node {
    enum Content {
        case value(JSON)
        case array([Node])
        case object([(name: String, node: Node)])
    }

    /// A type that encodes nothing is an object without members.
    var content: Content = .object([])

    var json: JSON {
        switch content {
        case .value(let json): return json
        case .array(let nodes): return .array(nodes.map(\.json))
        case .object(let members):
            var object = JSON.Object()
            for (name, node) in members.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
                object[name] = node.json
            }
            return .object(object)
        }
    }

    func encode(_ value: some Encodable, at path: [any CodingKey]) throws {
        guard let scalar = value as? any JSONScalar else {
            return try value.encode(to: TreeEncoder(self, at: path, isSnakeCase: value is any SnakeCaseJSON))
        }
        guard let json = scalar.json else {
            let context = EncodingError.Context(codingPath: path, debugDescription: "JSON has no number for \(value)")
            throw EncodingError.invalidValue(value, context)
        }
        content = .value(json)
    }

    /// Adds a member to an object.
    func member(_ name: String) -> Node {
        let node = Node()
        guard case .object(var members) = content else { return node }
        content = .object([])
        members.append((name, node))
        content = .object(members)
        return node
    }

    /// Adds an element to an array.
    func element() -> Node {
        let node = Node()
        guard case .array(var nodes) = content else { return node }
        content = .array([])
        nodes.append(node)
        content = .array(nodes)
        return node
    }

    var count: Int {
        if case .array(let nodes) = content { nodes.count } else { 0 }
    }
}

private struct TreeEncoder: Encoder, SingleValueEncodingContainer {
    let node: Node
    let codingPath: [any CodingKey]
    /// Whether the members of the type that is being encoded are in snake case.
    let isSnakeCase: Bool
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ node: Node, at path: [any CodingKey], isSnakeCase: Bool = false) {
        self.node = node
        codingPath = path
        self.isSnakeCase = isSnakeCase
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedWriter(node: node, codingPath: codingPath, isSnakeCase: isSnakeCase))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        node.content = .array([])
        return UnkeyedWriter(node: node, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func encodeNil() { node.content = .value(.null) }

    func encode<Value: Encodable>(_ value: Value) throws { try node.encode(value, at: codingPath) }
}

private struct KeyedWriter<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let node: Node
    let codingPath: [any CodingKey]
    let isSnakeCase: Bool

    func encodeNil(forKey key: Key) { encoder(key).encodeNil() }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws { try encoder(key).encode(value) }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        encoder(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder(key).unkeyedContainer() }

    func superEncoder() -> any Encoder { TreeEncoder(node.member("super"), at: codingPath) }

    func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }

    private func encoder(_ key: Key) -> TreeEncoder {
        let name = JSONMemberName(key, isSnakeCase: isSnakeCase)
        return TreeEncoder(node.member(name.stringValue), at: codingPath + [name])
    }
}

private struct UnkeyedWriter: UnkeyedEncodingContainer {
    let node: Node
    let codingPath: [any CodingKey]

    var count: Int { node.count }

    func encodeNil() { encoder().encodeNil() }

    func encode<Value: Encodable>(_ value: Value) throws { try encoder().encode(value) }

    func nestedContainer<NestedKey: CodingKey>(keyedBy type: NestedKey.Type) -> KeyedEncodingContainer<NestedKey> {
        encoder().container(keyedBy: type)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder().unkeyedContainer() }

    func superEncoder() -> any Encoder { encoder() }

    private func encoder() -> TreeEncoder {
        TreeEncoder(node.element(), at: codingPath + [JSONIndex(count)])
    }
}
