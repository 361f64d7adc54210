import Foundation
import HeraldJSON

/// Reads binary and XML property lists.
enum PropertyListFile {
    /// The deepest nesting.
    static let maximumDepth = 64

    /// Whether a file is a binary or XML property list; otherwise it is in the older text format.
    static func isPropertyList(_ bytes: [UInt8]) -> Bool {
        if BinaryPropertyList.isBinary(bytes) { return true }
        let head = String(decoding: bytes.prefix(256), as: UTF8.self).drop { $0.isWhitespace || $0 == "\u{FEFF}" }
        return ["<?xml", "<!DOCTYPE plist", "<plist"].contains { head.hasPrefix($0) }
    }

    /// Reads the value of a file.
    /// - Throws: ``BundleError``.
    static func read(_ bytes: [UInt8], file: String, limits: BundleLimits) throws -> JSON {
        if BinaryPropertyList.isBinary(bytes) {
            return try BinaryPropertyList.read(bytes, file: file, limit: limits.objects)
        }
        let head = String(decoding: bytes.prefix(256), as: UTF8.self).lowercased()
        guard isPropertyList(bytes), !head.contains("encoding=") || head.contains("utf-8") else {
            throw BundleError(file, "is neither a binary property list nor one of XML in UTF-8")
        }
        // Foundation's reader is recursive, without a limit.
        guard let depth = depth(of: bytes) else {
            throw BundleError(file, "has a document type with declarations of its own")
        }
        // The outermost level is `<plist>`.
        guard depth <= maximumDepth + 1 else {
            throw BundleError(file, "is nested deeper than \(maximumDepth) levels")
        }
        do {
            return value(try PropertyListSerialization.propertyList(from: Data(bytes), options: [], format: nil))
        } catch {
            throw BundleError(file, "is not a property list")
        }
    }

    /// Reads a property list that is a dictionary.
    static func members(_ bytes: [UInt8], file: String, limits: BundleLimits) throws -> JSON.Object {
        guard let members = try read(bytes, file: file, limits: limits).members else {
            throw BundleError(file, "is not a dictionary")
        }
        return members
    }

    /// An upper bound of the nesting of `<plist>`, `<dict>` and `<array>`; nil for a document type with declarations of its
    /// own, which may hide markup from this scan.
    ///
    /// Comments, character data and processing instructions do not count.
    private static func depth(of bytes: [UInt8]) -> Int? {
        var (depth, deepest, position) = (0, 0, 0)
        func isNext(_ text: StaticString) -> Bool {
            guard bytes.count - position >= text.utf8CodeUnitCount else { return false }
            for offset in 0..<text.utf8CodeUnitCount where bytes[position + offset] != text.utf8Start[offset] {
                return false
            }
            return true
        }
        func skip(to end: StaticString) {
            while position < bytes.count, !isNext(end) { position += 1 }
        }
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else {
                position += 1
                continue
            }
            if isNext("<!--") {
                position += 4
                skip(to: "-->")
            } else if isNext("<![CDATA[") {
                skip(to: "]]>")
            } else if isNext("<?") {
                skip(to: "?>")
            } else if isNext("<!DOCTYPE") {
                while position < bytes.count, bytes[position] != UInt8(ascii: ">") {
                    guard bytes[position] != UInt8(ascii: "[") else { return nil }
                    position += 1
                }
            } else if isNext("<plist") || isNext("<dict") || isNext("<array") {
                skip(to: ">")
                if bytes[position - 1] != UInt8(ascii: "/") { depth += 1 }
                deepest = max(deepest, depth)
            } else if isNext("</plist") || isNext("</dict") || isNext("</array") {
                // Not below zero: an end without its beginning must not pay for a later beginning.
                depth = max(0, depth - 1)
            }
            position += 1
        }
        return deepest
    }

    private static func value(_ any: Any) -> JSON {
        switch any {
        case let text as String: .string(text)
        case let members as [String: Any]: .object(members.reduce(into: [:]) { $0[$1.key] = value($1.value) })
        case let elements as [Any]: .array(elements.map(value))
        case let truth as Bool: .boolean(truth)
        case let number as Int: .number(JSON.Number(number))
        case let number as UInt64: .number(JSON.Number(number))
        case let number as Double: JSON.Number(number).map { .number($0) } ?? .null
        default: .null
        }
    }
}
