import { describe, expect, it } from 'vitest'
import { message } from '../../../../test/world/outbox-message.ts'
import { type Log, silentLog } from '../../../core/log.ts'
import { logTransport } from './transport.ts'

describe('a delivery to the log', () => {
  it('is one line that says which message it is, and not what is in it', async () => {
    const lines: unknown[] = []
    const log: Log = { ...silentLog, info: (details, text) => lines.push({ ...details, text }) }
    await logTransport({ log }).deliver(message(), new AbortController().signal)
    expect(lines).toEqual([
      {
        id: '7',
        key: 'ba73d97a-5b6f-e712-ae41-f39ca66495e4',
        eventType: 'order.created',
        tenantId: 'acme',
        bytes: 12,
        text: 'outbox message delivered to the log',
      },
    ])
  })

  it.each<[unknown, string]>([
    [undefined, 'option transport is invalid'],
    [{}, "option log is invalid; it has no function 'info'"],
    [{ log: null }, "option log is invalid; it has no function 'info'"],
    [{ log: silentLog, level: 'warn' }, 'option level is invalid; there is no such option'],
  ])('is refused without a log: %j', (options, text) => {
    // What a user of plain JavaScript may write.
    expect(() => logTransport(options as { log: Log })).toThrow(text)
  })
})
