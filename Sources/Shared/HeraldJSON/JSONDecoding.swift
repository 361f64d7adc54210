extension JSON {
    /// Decodes a value from the tree; a member of the type ``JSON`` is the part of the tree with every digit.
    ///
    /// As with Foundation's decoder, an integer may be written `1.0`. A number that does not fit its type is an error.
    /// - Throws: `DecodingError`, or the error of the type.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try TreeDecoder(self, at: []).decode(type)
    }

    /// A member of an object whose type has no such key.
    public struct UnknownKey: Error {
        /// The key, behind those of the objects around it: `to.topics`.
        public let path: String
        /// Its last part.
        public let name: String
        /// The keys that the type asked for; not all of them if a value before was missing or wrong.
        public let known: [String]
        /// Whether ``known`` has all keys.
        public let isComplete: Bool
    }

    /// Decodes a value like ``decode(_:)``, and refuses members for which a type has no coding key.
    /// - Throws: ``UnknownKey`` before any other error, or as ``decode(_:)``.
    public func decodeWhole<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        let search = KeySearch()
        let decoder = TreeDecoder(self, at: [], search)
        let result = Result { try decoder.decode(type) }
        let isComplete = (try? result.get()) != nil
        if let (path, name) = search.found {
            throw UnknownKey(path: path, name: name, known: search.known, isComplete: isComplete)
        }
        return try result.get()
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

/// Finds the first unknown key of a text, and the keys that the type of its object asks for.
private final class KeySearch {
    var found: (path: String, name: String)?
    var known: [String] = []

    /// Whether the members have the first unknown key.
    func finds<Key: CodingKey>(
        in members: JSON.Object,
        of type: Key.Type,
        at path: [any CodingKey],
        isSnakeCase: Bool
    ) -> Bool {
        let name = members.names.first { name in
            let key: Key? = JSONMemberName.property(name, isSnakeCase: isSnakeCase)
            return key == nil
        }
        guard found == nil, let name else { return false }
        let names = path.filter { $0.intValue == nil }.map(\.stringValue) + [name]
        found = (names.joined(separator: "."), name)
        return true
    }
}

/// Decodes one value of a tree.
private struct TreeDecoder: Decoder, SingleValueDecodingContainer {
    let json: JSON
    let codingPath: [any CodingKey]
    /// Nil if unknown keys are ignored.
    let search: KeySearch?
    /// Whether the members of the type that is being decoded are in snake case.
    var isSnakeCase = false
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ json: JSON, at path: [any CodingKey], _ search: KeySearch? = nil) {
        self.json = json
        codingPath = path
        self.search = search
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard let members = json.members else { throw mismatch([String: JSON].self) }
        let isFound = search?.finds(in: members, of: type, at: codingPath, isSnakeCase: isSnakeCase) ?? false
        return KeyedDecodingContainer(
            KeyedReader(
                members: members,
                codingPath: codingPath,
                search: search,
                isFound: isFound,
                isSnakeCase: isSnakeCase
            )
        )
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard let elements = json.elements else { throw mismatch([JSON].self) }
        return UnkeyedReader(elements: elements, codingPath: codingPath, search: search)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { json == .null }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        guard let scalar = type as? any JSONScalar.Type else {
            var decoder = self
            decoder.isSnakeCase = type is any SnakeCaseJSON.Type
            return try Value(from: decoder)
        }
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
    let search: KeySearch?
    /// Whether these members have the unknown key.
    let isFound: Bool
    let isSnakeCase: Bool

    var allKeys: [Key] { members.names.compactMap { JSONMemberName.property($0, isSnakeCase: isSnakeCase) } }

    func contains(_ key: Key) -> Bool { member(key) != nil }

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

    func superDecoder() -> any Decoder { TreeDecoder(members["super"] ?? .null, at: codingPath, search) }

    func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }

    private func member(_ key: Key) -> JSON? {
        let name = JSONMemberName(key, isSnakeCase: isSnakeCase).stringValue
        if isFound, let search, !search.known.contains(name) { search.known.append(name) }
        return members[name]
    }

    private func decoder(_ key: Key) throws -> TreeDecoder {
        let name = JSONMemberName(key, isSnakeCase: isSnakeCase)
        guard let json = member(key) else {
            let reason = "there is no member \(name.stringValue)"
            throw DecodingError.keyNotFound(name, .init(codingPath: codingPath, debugDescription: reason))
        }
        return TreeDecoder(json, at: codingPath + [name], search)
    }
}

private struct UnkeyedReader: UnkeyedDecodingContainer {
    let elements: [JSON]
    let codingPath: [any CodingKey]
    let search: KeySearch?
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
        return TreeDecoder(elements[currentIndex], at: path, search)
    }
}
