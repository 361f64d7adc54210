/// The documents that the rules of scenarios come from.
enum Source {
    static let connection = "Apple, Sending notification requests to APNs: keep connections open"
    static let token = "Apple, Establishing a token-based connection to APNs: refresh a token at most every 20 minutes"
    static let responses = "Apple, Handling notification responses from APNs"
    static let headers = "Apple, Sending notification requests to APNs"
    static let goAway = "RFC 9113 §6.8: streams up to the last one are answered; later ones may be sent again"
    static let refusedStream = "RFC 9113 §8.7: a stream that was refused was not processed and may be sent again"
    static let streams = "RFC 9113 §5.1.2: a client keeps within the limit of concurrent streams"
    static let authority = "Apple, Setting up a remote notification server; RFC 9110 §4.3.4"
    static let retryAfter = "RFC 9110 §10.2.3"
    static let field = "seen in the field"
}
