extension JSON {
    /// Decodes a value from the tree; a member of the type ``JSON`` is the part of the tree with every digit.
    ///
    /// As with Foundation's decoder, an integer may be written `1.0`. A number that does not fit its type is an error.
    /// - Throws: `DecodingError`, or the error of the type.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try TreeDecoder(self, at: []).decode(type)
    }

    /// Reads a text, and decodes a value from it.
    /// - Throws: ``JSON/Failure``, `DecodingError`, or the error of the type.
    public static func decode<Value: Decodable>(
        _ type: Value.Type = Value.self,
        from bytes: [UInt8],
        rules: Rules = .strict
    ) throws -> Value {
        try JSON(bytes, rules: rules).decode(type)
    }
}

extension JSON: Decodable {
    /// Decodes the part of the tree at hand.
    ///
    /// Other decoders do not give the text of numbers, so that digits would be lost. Use ``JSON/decode(_:)``.
    public init(from decoder: any Decoder) throws {
        guard let decoder = decoder as? TreeDecoder else {
            let reason = "a value of the type JSON is decoded with JSON.decode, which keeps every digit"
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: reason))
        }
        self = decoder.json
    }
}

/// Decodes one value of a tree.
private struct TreeDecoder: Decoder, SingleValueDecodingContainer {
    let json: JSON
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ json: JSON, at path: [any CodingKey]) {
        self.json = json
        codingPath = path
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard let members = json.members else { throw mismatch([String: JSON].self) }
        return KeyedDecodingContainer(KeyedReader(members: members, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard let elements = json.elements else { throw mismatch([JSON].self) }
        return UnkeyedReader(elements: elements, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { json == .null }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard let scalar = type as? any JSONScalar.Type else { return try Value(from: self) }
        if let value = scalar.init(json: json) as? Value { return value }
        guard scalar.isNumber, let number = json.number else { throw mismatch(type) }
        let reason = "the number \(number) does not fit in \(type)"
        throw DecodingError.dataCorrupted(.init(codingPath: codingPath, debugDescription: reason))
    }

    private func mismatch(_ type: any Any.Type) -> DecodingError {
        let context = DecodingError.Context(codingPath: codingPath, debugDescription: "expected \(type)")
        return json == .null ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }
}

private struct KeyedReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let members: JSON.Object
    let codingPath: [any CodingKey]

    var allKeys: [Key] { members.names.compactMap { Key(stringValue: $0) } }

    func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

    func decodeNil(forKey key: Key) throws -> Bool { try decoder(key).decodeNil() }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try decoder(key).decode(type)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type,
        forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try decoder(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder(key).unkeyedContainer()
    }

    func superDecoder() -> any Decoder { TreeDecoder(members["super"] ?? .null, at: codingPath) }

    func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }

    private func decoder(_ key: Key) throws -> TreeDecoder {
        guard let json = members[key.stringValue] else {
            let reason = "there is no member \(key.stringValue)"
            throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: reason))
        }
        return TreeDecoder(json, at: codingPath + [key])
    }
}

private struct UnkeyedReader: UnkeyedDecodingContainer {
    let elements: [JSON]
    let codingPath: [any CodingKey]
    var currentIndex = 0

    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    mutating func decodeNil() throws -> Bool {
        guard try decoder().decodeNil() else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let value = try decoder().decode(type)
        currentIndex += 1
        return value
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        let container = try decoder().container(keyedBy: type)
        currentIndex += 1
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try decoder().unkeyedContainer()
        currentIndex += 1
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try decoder()
        currentIndex += 1
        return decoder
    }

    private func decoder() throws -> TreeDecoder {
        let path = codingPath + [JSONIndex(currentIndex)]
        guard !isAtEnd else {
            let context = DecodingError.Context(codingPath: path, debugDescription: "the array has no more elements")
            throw DecodingError.valueNotFound(JSON.self, context)
        }
        return TreeDecoder(elements[currentIndex], at: path)
    }
}
