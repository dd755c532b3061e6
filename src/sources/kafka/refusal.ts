/** What the Kafka API refuses: thrown where it is found, answered in one place (routes/reply.ts). Clients switch on `exception_id`. */
import type { Reason } from './event.ts'

/** The refusals with their data, as the contract has them. */
interface RefusalData {
  readonly previewParamsError: { readonly skip: number; readonly limit: number }
  readonly overrideValidationError: {
    readonly event: object
    readonly reason: string
    readonly reasons: readonly Reason[]
  }
  readonly unexpectedBodyError: Readonly<Record<never, never>>
  readonly invalidCorrelationId: Readonly<Record<never, never>>
  readonly unknownServiceError: { readonly service: string }
  readonly emptyDLQError: { readonly service: string; readonly topic?: string }
  readonly dlqSequenceError: {
    readonly service: string
    /** null where the call names no topic. */
    readonly topic: string | null
    readonly supplied_dlq_id: string
    readonly expected_dlq_id: string
  }
  readonly dlqBusyError: { readonly service: string; readonly dlq_id: string | null }
  readonly publishGuardError: { readonly dlq_id: string; readonly reasons: readonly Reason[] }
  readonly uncertainPublishError: { readonly dlq_id: string; readonly event_id: string }
  readonly processingError: { readonly dlq_id: string; readonly message: string }
  readonly processingTimeoutError: { readonly dlq_id: string; readonly message: string }
  readonly kafkaUnavailableError: Readonly<Record<never, never>>
}
type RefusalId = keyof RefusalData

const REFUSAL_STATUS: Readonly<Record<RefusalId, number>> = {
  previewParamsError: 400,
  overrideValidationError: 400,
  unexpectedBodyError: 400,
  invalidCorrelationId: 400,
  unknownServiceError: 404,
  emptyDLQError: 404,
  dlqSequenceError: 409,
  dlqBusyError: 409,
  publishGuardError: 409,
  uncertainPublishError: 409,
  processingError: 500,
  processingTimeoutError: 504,
  kafkaUnavailableError: 503,
}

export class KafkaRefused<Id extends RefusalId = RefusalId> extends Error {
  override readonly name = 'KafkaRefused'
  readonly id: Id
  readonly data: RefusalData[Id]
  /** Differs from the table's only where a condition of the request failed: 412 instead of 409. */
  readonly status: number

  constructor(id: Id, data: RefusalData[Id], description: string, status: number = REFUSAL_STATUS[id]) {
    super(description)
    this.id = id
    this.data = data
    this.status = status
  }
}
