/// Parser of the `authorization` field: `bearer` in any case, and a token.
enum BearerScheme {
    private static let word: StaticString = "bearer"

    /// The token in the field's value; nil if there is none.
    static func token(in value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var position = word.utf8CodeUnitCount
        guard value.count > position, value[position] == UInt8(ascii: " ") else { return nil }
        for index in 0..<position where value[index] | 0x20 != word.utf8Start[index] { return nil }
        while position < value.count, value[position] == UInt8(ascii: " ") { position += 1 }
        guard position < value.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: value[position...])
    }
}
