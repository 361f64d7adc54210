import Foundation

/// JSON of the protocol, whose names are in snake case.
enum ProtocolJSON {
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return try encoder.encode(value)
    }

    /// Decodes a type without coding keys of its own.
    static func decode<Value: Decodable>(_ type: Value.Type, from json: Data) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(type, from: json)
    }
}
