/** Instants on the wire: protobuf timestamps, where the zero time stands for "none". */
import type { Timestamp } from '@bufbuild/protobuf/wkt'
import type { Instant } from '../../core/clock.ts'
import { failure } from '../../core/errors.ts'
import { instantFromParts, isTimestamp, partsFromInstant, ZERO_TIME } from '../../core/timestamp.ts'

/** What a client sent as `field`. Binary messages can carry times that no calendar has; those are refused. */
export function instantFromWire(timestamp: Pick<Timestamp, 'seconds' | 'nanos'>, field: string): Instant {
  const { seconds, nanos } = timestamp
  const at = instantFromParts(seconds, nanos)
  if (nanos < 0 || nanos > 999_999_999 || !isTimestamp(at)) {
    const reason = `${field} is not a timestamp between the years 0001 and 9999`
    throw failure('body_undecodable', { reason })
  }
  return at
}

/** The fields of the protobuf timestamp for an instant; null is sent as the zero time. */
export const wireFromInstant = (at: Instant | null): { seconds: bigint; nanos: number } =>
  partsFromInstant(at ?? ZERO_TIME)

/** A received timestamp to send back: cut down to microseconds, the zero time when there is none. */
export function wireEcho(timestamp: Timestamp | undefined): { seconds: bigint; nanos: number } {
  if (timestamp === undefined) return wireFromInstant(null)
  const at = instantFromParts(timestamp.seconds, timestamp.nanos)
  return wireFromInstant(isTimestamp(at) ? at : null)
}
