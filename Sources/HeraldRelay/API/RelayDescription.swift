/// The requests in OpenAPI 3.1, as `/openapi.yaml` serves them; the same text is in the manual.
enum RelayDescription {
    static let yaml = #"""
        openapi: 3.1.0
        info:
          title: Herald's relay
          version: "1"
          description: |
            What servers in other languages ask of the relay: register a device token, queue a notification, look up what became of
            it; and health and metrics for operators. The relay listens on port 2192 of the machine itself unless told otherwise.
            `/v1` is there only if the relay runs with `--api-token`.
        servers:
          - url: http://127.0.0.1:2192
        security:
          - token: []
        tags:
          - name: health
          - name: queue
        paths:
          /openapi.yaml:
            get:
              tags: [health]
              operationId: description
              summary: This description.
              security: []
              responses:
                "200":
                  description: OpenAPI 3.1.
                  content:
                    application/yaml: {}
          /health:
            get:
              tags: [health]
              operationId: health
              summary: Whether rows are sent that could be.
              security: []
              responses:
                "200": {$ref: "#/components/responses/Health"}
                "503": {$ref: "#/components/responses/Health"}
          /health/live:
            get:
              tags: [health]
              operationId: live
              summary: Whether the process runs.
              security: []
              responses:
                "200":
                  description: It does.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [status]
                        properties:
                          status: {const: live}
                        additionalProperties: false
          /metrics:
            get:
              tags: [health]
              operationId: metrics
              summary: All metrics, for Prometheus (text exposition format 0.0.4).
              security: []
              responses:
                "200":
                  description: None names a row, a token or a topic.
                  content:
                    text/plain:
                      schema: {type: string}
          /v1/devices:
            put:
              tags: [queue]
              operationId: register
              summary: Register a device token, or register it again with other languages; it is alive from now on.
              requestBody:
                required: true
                content:
                  application/json:
                    schema: {$ref: "#/components/schemas/Device"}
              responses:
                "200":
                  description: It is registered.
                  content:
                    application/json:
                      schema: {type: object, additionalProperties: false}
                "400": {$ref: "#/components/responses/Failure"}
                "401": {$ref: "#/components/responses/Failure"}
                "413": {$ref: "#/components/responses/Failure"}
                "503": {$ref: "#/components/responses/Failure"}
          /v1/pushes:
            post:
              tags: [queue]
              operationId: enqueue
              summary: Queue a notification.
              description: |
                To whom: `device_token` or `user`. What: `payload` or `template`. What no service would take is refused here;
                whether the service takes it, `GET /v1/pushes/{id}` says.
              requestBody:
                required: true
                content:
                  application/json:
                    schema: {$ref: "#/components/schemas/Push"}
              responses:
                "201":
                  description: It is in the queue, durably.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [id]
                        properties:
                          id: {type: integer, minimum: 1}
                        additionalProperties: false
                "400": {$ref: "#/components/responses/Failure"}
                "401": {$ref: "#/components/responses/Failure"}
                "413": {$ref: "#/components/responses/Failure"}
                "503": {$ref: "#/components/responses/Failure"}
          /v1/pushes/{id}:
            get:
              tags: [queue]
              operationId: outcome
              summary: What became of a notification, token by token.
              parameters:
                - name: id
                  in: path
                  required: true
                  schema: {type: integer, minimum: 1}
              responses:
                "200":
                  description: How it stands.
                  content:
                    application/json:
                      schema: {$ref: "#/components/schemas/Record"}
                "400": {$ref: "#/components/responses/Failure"}
                "401": {$ref: "#/components/responses/Failure"}
                "404": {$ref: "#/components/responses/Failure"}
                "503": {$ref: "#/components/responses/Failure"}
          /v1/status:
            get:
              tags: [queue]
              operationId: status
              summary: How the queue stands.
              responses:
                "200":
                  description: The same as `herald relay status --json`.
                  content:
                    application/json:
                      schema: {$ref: "#/components/schemas/Progress"}
                "401": {$ref: "#/components/responses/Failure"}
                "503": {$ref: "#/components/responses/Failure"}
        components:
          securitySchemes:
            token:
              type: http
              scheme: bearer
              description: The content of the file that `--api-token` names.
          responses:
            Health:
              description: What is wrong, if anything is.
              content:
                application/json:
                  schema:
                    type: object
                    required: [status, problems, notes]
                    properties:
                      status: {enum: [ready, failing]}
                      problems: {type: array, items: {type: string}}
                      notes:
                        description: What is not as it should be and does not make the relay unhealthy yet.
                        type: array
                        items: {type: string}
                      oldest_unsent_seconds:
                        description: How long the oldest row has waited that could have been sent; not there if there is none.
                        type: number
                        minimum: 0
                    additionalProperties: false
            Failure:
              description: Why not.
              content:
                application/json:
                  schema:
                    type: object
                    required: [error]
                    properties:
                      error: {type: string}
                    additionalProperties: false
          schemas:
            Token:
              type: string
              pattern: "^[0-9a-fA-F]{64}$"
            Topic:
              type: string
              pattern: "^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$"
              maxLength: 200
            Name:
              type: string
              pattern: "^[^\\u0000]+$"
              minLength: 1
            Device:
              type: object
              required: [device_token, topic]
              properties:
                device_token: {$ref: "#/components/schemas/Token"}
                topic: {$ref: "#/components/schemas/Topic"}
                environment: {enum: [production, sandbox]}
                service:
                  description: The name of the service that minted the token, as the relay's configuration has it.
                  type: string
                  pattern: "^[!-~]+$"
                  maxLength: 64
                user:
                  description: Whose device it is; pushes may name the user instead of tokens.
                  type: string
                  pattern: "^[ -~]+$"
                  maxLength: 200
                languages:
                  description: Preferred languages (BCP 47), the most preferred first.
                  type: array
                  maxItems: 20
                  items: {type: string, pattern: "^[A-Za-z0-9-]{1,64}$"}
              additionalProperties: false
            Push:
              type: object
              required: [topic]
              properties:
                device_token:
                  oneOf:
                    - {$ref: "#/components/schemas/Token"}
                    - {type: array, minItems: 1, maxItems: 1000, items: {$ref: "#/components/schemas/Token"}}
                user: {type: string, pattern: "^[ -~]+$", maxLength: 200}
                topic: {$ref: "#/components/schemas/Topic"}
                payload:
                  description: A JSON object of at most 5,120 bytes, or its text, which goes out byte for byte.
                  oneOf:
                    - {type: object}
                    - {type: string}
                template:
                  description: The name of a template in `push_templates`.
                  type: string
                  pattern: "^[ -~]+$"
                  maxLength: 200
                parameters:
                  type: object
                  additionalProperties: {type: [string, number, boolean, "null"]}
                priority: {enum: [1, 5, 10]}
                expiration:
                  description: Seconds since 1970; 0 for one attempt.
                  type: integer
                  minimum: 0
                  maximum: 253402300799
                collapse_id: {type: string, pattern: "^[ -~]{1,64}$"}
                push_type:
                  enum: [alert, background, complication, controls, fileprovider, liveactivity, location, mdm, pushtotalk, voip, widgets]
                send_after: {$ref: "#/components/schemas/Moment"}
                give_up_at: {$ref: "#/components/schemas/Moment"}
                environment: {enum: [production, sandbox]}
                service: {type: string, pattern: "^[!-~]+$", maxLength: 64}
              additionalProperties: false
              allOf:
                - oneOf:
                    - required: [device_token]
                    - required: [user]
                - oneOf:
                    - required: [payload]
                      not: {required: [parameters]}
                    - required: [template]
            Moment:
              description: RFC 3339 in UTC, like 2026-11-21T02:34:56Z.
              type: string
              pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z$"
            Status: {enum: [queued, sent, refused, expired, failed]}
            Record:
              type: object
              required: [id, status, outcomes]
              properties:
                id: {type: integer}
                status: {$ref: "#/components/schemas/Status"}
                reason: {type: string}
                time_queued: {type: string}
                time_sent: {type: string}
                outcomes:
                  type: array
                  items:
                    type: object
                    required: [status, attempts]
                    properties:
                      device_token: {type: string}
                      status: {$ref: "#/components/schemas/Status"}
                      reason: {type: string}
                      apns_id: {type: string}
                      attempts: {type: integer}
                      time_sent: {type: string}
                    additionalProperties: false
              additionalProperties: false
            Progress:
              type: object
              required: [rows, scheduled, retrying, waiting, claims, brakes, devices, dead_devices, held_devices]
              properties:
                rows: {type: object, additionalProperties: {type: integer}}
                scheduled: {type: integer}
                retrying: {type: integer}
                waiting:
                  description: Why rows wait for the next try, and how many.
                  type: object
                  additionalProperties: {type: integer}
                brakes:
                  description: Apps whose tokens are not marked dead, since far more of them died than usual.
                  type: array
                  items:
                    type: object
                    required: [app, deaths, answers, since]
                    properties:
                      app: {type: string}
                      deaths: {type: integer}
                      answers: {type: integer}
                      since: {type: string}
                    additionalProperties: false
                oldest_unsent_seconds: {type: number}
                claims:
                  type: array
                  items:
                    type: object
                    required: [owner, rows, lease_end, lapsed]
                    properties:
                      owner: {type: string}
                      rows: {type: integer}
                      lease_end: {type: string}
                      lapsed: {type: boolean}
                    additionalProperties: false
                devices: {type: integer}
                dead_devices: {type: integer}
                held_devices: {type: integer}
              additionalProperties: false

        """#
}
