/** One call of the webhook API: where it is, who may make it, how it is described, and what answers it. */
import type { Clock } from '../../core/clock.ts'
import type { Role } from '../../http/auth.ts'
import type { JsonSchema } from '../../http/proto-schema.ts'
import type { WebhookSettings } from '../settings.ts'
import type { Webhooks } from '../webhooks.ts'
import type { Answer } from './reply.ts'
import type { WebhookRequest } from './request.ts'

/** What calls work with. */
export type CalledWebhooks = Pick<
  Webhooks,
  | 'producers'
  | 'channels'
  | 'consumers'
  | 'messages'
  | 'seeding'
  | 'broadcasts'
  | 'jobs'
  | 'dead'
  | 'bulk'
  | 'status'
  | 'settings'
>

export interface CallScope extends CalledWebhooks {
  readonly clock: Clock
}

/**
 * Who may make a call once the server has tokens: whoever carries tokens of the channel, the producer or the consumer (`own`);
 * readers; readers of what shows such tokens, who could send with them; or who may change everything.
 */
export type Access = 'own' | 'read' | 'read tokens' | 'write'

export interface WebhookCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With `:name` for its variable parts. */
  readonly path: string
  readonly access: Access
  readonly summary: string
  /** The headers that it reads; what it needs is told by its errors. */
  readonly headers?: readonly string[]
  /** Parameters of the query, and the fields of a form, with their meaning. */
  readonly query?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
  /** Another body than a form. */
  readonly body?: { readonly mediaType: string; readonly schema: JsonSchema }
  /** The status of success, and the JSON that comes with it. */
  readonly success: readonly [status: number, shape?: JsonSchema]
  /** The other statuses that it knows. */
  readonly errors: readonly number[]
  answer(request: WebhookRequest, scope: CallScope): Promise<Answer>
}

/** The role that a call asks for. */
export function roleOf(access: Access, { openManagement, api }: WebhookSettings): Role | 'open' {
  if (access === 'own' || openManagement) return 'open'
  switch (access) {
    case 'read':
      return 'viewer'
    case 'read tokens':
      return api.exposeTokens ? 'operator' : 'viewer'
    case 'write':
      return 'admin'
  }
}
