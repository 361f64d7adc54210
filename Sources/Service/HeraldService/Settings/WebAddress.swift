package import Foundation

/// Reads the address of a web server from a setting.
package enum WebAddress {
    /// The URL; nil for one that is not of HTTP, and for one with a user, a query or a fragment.
    ///
    /// Addresses are logged, and those parts hold secrets.
    package static func read(_ text: String) -> URL? {
        guard !text.contains(where: { "@?#".contains($0) }), let url = URL(string: text), url.host?.isEmpty == false,
            let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https"
        else { return nil }
        return url
    }

    /// Whether a text is empty, or an address without a path.
    static func isSiteOrEmpty(_ text: String) -> Bool {
        text.isEmpty || ["", "/"].contains(read(text)?.path)
    }
}
