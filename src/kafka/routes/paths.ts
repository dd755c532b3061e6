/** What the Kafka API answers where no call is: a wrong method is told the right ones, everything else is unknown. */
import { pathOf } from '../../http/facades.ts'
import type { KafkaCall } from './call.ts'
import { type Answer, methodNotAllowed, UNKNOWN_PATH } from './reply.ts'

/** Whether a path is no call, though one fits it: a name in it is empty, or it is a dry run that lacks its service. */
export function isNoCall(names: Readonly<Record<string, string>>): boolean {
  const { service, topic } = names
  return Object.values(names).includes('') || (service === 'rpc' && topic === 'dry-run')
}

/** The answer to a request that no call takes; `url` may have a query. */
export function answerWithoutCall(calls: readonly KafkaCall[], method: string, url: string): Answer {
  const path = pathOf(url)
  const methods = new Set<string>(calls.filter((call) => fits(call.path, path)).map((call) => call.method))
  // With a method that fits, it was a name that is none, or bytes that are no text.
  if (methods.size === 0 || methods.has(method) || path === '/kafka/rpc/dry-run') return UNKNOWN_PATH
  return methodNotAllowed([...methods].sort().join(', '))
}

function fits(pattern: string, path: string): boolean {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  return (
    wanted.length === given.length &&
    wanted.every((segment, index) =>
      segment.startsWith(':') ? given[index] !== '' : segment === given[index],
    )
  )
}
