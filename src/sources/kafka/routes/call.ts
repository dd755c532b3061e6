/** One call of the Kafka API: where it is, how it is described, and what answers it. */
import type { Answer } from '../../../api/exact-answer.ts'
import type { JsonSchema } from '../../../api/proto-schema.ts'
import type { Caller, StoredEvent } from '../event.ts'
import type { KafkaMetrics } from '../metrics.ts'
import type { IntakeStanding } from '../ports.ts'
import type { QueueReader } from '../queue-reader.ts'
import type { Assignment } from '../reassign.ts'
import type { ReturnPath } from '../return/return-path.ts'
import type { KafkaSettings } from '../settings.ts'
import type { KafkaRequest } from './request.ts'

export interface KafkaCalls {
  readonly settings: KafkaSettings
  readonly returnPath: ReturnPath
  readonly reader: QueueReader
}

/** What a server needs of the Kafka part of an office. */
export interface ServedKafka {
  readonly calls: KafkaCalls
  readonly metrics: Pick<KafkaMetrics, 'text'>
  /** How intake stands now. */
  standing(): IntakeStanding
  /** Gives an event to a service; gives the event as it is then. */
  reassign(dlqId: string, assignment: Assignment, caller: Caller): Promise<StoredEvent>
}

export interface KafkaCall {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `:name` for its variable parts. */
  readonly path: string
  readonly operationId: string
  readonly summary: string
  /** Whether nobody is asked for a token. */
  readonly isOpen?: boolean
  /** The headers and the parameters of the query that it reads. */
  readonly headers?: Readonly<Record<string, JsonSchema>>
  readonly query?: Readonly<Record<string, JsonSchema>>
  readonly body?: JsonSchema
  /** The statuses of success, each with the JSON that comes with it. */
  readonly success: Readonly<Record<number, { readonly meaning: string; readonly shape?: JsonSchema }>>
  /** The other statuses that it knows. */
  readonly errors: readonly number[]
  answer(request: KafkaRequest, calls: KafkaCalls): Promise<Answer>
}
