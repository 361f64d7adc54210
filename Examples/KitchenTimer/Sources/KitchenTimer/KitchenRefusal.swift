import HTTPTypes

/// A request that the app or the family's server refuses, with the reason for its sender.
struct KitchenRefusal: Error, CustomStringConvertible {
    let description: String
    let status: HTTPResponse.Status

    init(_ words: String, status: HTTPResponse.Status = .badRequest) {
        description = words
        self.status = status
    }
}
