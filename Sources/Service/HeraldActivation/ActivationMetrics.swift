import CoreMetrics
import HTTPTypes

/// Outcomes of certificate requests: `herald_activations_total{operation,result}`.
struct ActivationMetrics: Sendable {
    /// Kind of request.
    enum Operation: String, CaseIterable, Sendable {
        case enroll, renew
    }

    private enum Result: String, CaseIterable {
        case done, refused, limited, failed

        init(_ status: HTTPResponse.Status) {
            self =
                switch status.code {
                case ..<400: .done
                case 429: .limited
                case ..<500: .refused
                default: .failed
                }
        }
    }

    private let counters: [Operation: [Result: Counter]]

    init() {
        // All series exist from the start, so that Prometheus sees the first increment.
        counters = Dictionary(
            uniqueKeysWithValues: Operation.allCases.map { operation in
                let results = Result.allCases.map { result in
                    let dimensions = [("operation", operation.rawValue), ("result", result.rawValue)]
                    return (result, Counter(label: "herald_activations_total", dimensions: dimensions))
                }
                return (operation, Dictionary(uniqueKeysWithValues: results))
            }
        )
    }

    func count(_ operation: Operation, _ status: HTTPResponse.Status) {
        counters[operation]?[Result(status)]?.increment()
    }
}
