/** Failures as services report them, each different from every other. */
import type { Instant } from '../../src/core/clock.ts'
import type { FailureReport } from '../../src/letters/reports/report.ts'

/** The report with this number. */
export const reportOf = (
  number: number,
  now: Instant,
  changes: Partial<FailureReport> = {},
): FailureReport => ({
  source: 'http',
  engine: 'hmac',
  instanceId: `instance-${number}`,
  correlationId: `correlation-${number}`,
  sourceId: `source-${number}`,
  originalQueue: 'hmac-rotation-queue',
  encoding: '',
  kind: '',
  reference: '',
  headers: null,
  payload: Buffer.from(`{"number":${number}}`),
  dequeueCount: 1,
  firstFailureAt: now,
  lastFailureAt: now,
  errorClass: 'TypeError',
  errorMessage: 'the key is gone',
  errorStack: null,
  failedBy: null,
  actor: 'tester',
  ...changes,
})
