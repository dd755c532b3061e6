import { createConnection } from 'node:net'
import { describe, expect, it } from 'vitest'
import { stores } from '../harness/stores.ts'
import { Broker, QUICK } from '../harness/webhooks.ts'

const cjk = (n: number, seed: number) => { let s = seed, t = ''; for (let i = 0; i < n; i++) { s = (s * 1103515245 + 12345) % 2147483648; t += String.fromCodePoint(0x4e00 + (s >> 8) % 20000) } return t }
const emoji = (n: number, seed: number) => { let s = seed, t = ''; for (let i = 0; i < n; i++) { s = (s * 1103515245 + 12345) % 2147483648; t += String.fromCodePoint(0x20000 + (s >> 8) % 40000) } return t }

describe.each(stores)('review on $name', (kind) => {
  it.each([['ascii', 'a'.repeat(255), 'b'.repeat(255)], ['cjk', cjk(255, 1), cjk(255, 7)], ['ext-b', emoji(255, 3), emoji(255, 9)]])('long ids %s', async (_, c, k) => {
    const broker = await Broker.start(kind, { webhooks: { ...QUICK, delivery: { ...QUICK.delivery, maxRetry: 0 } } as never })
    try {
      const e = encodeURIComponent
      const { client, receiver } = broker
      receiver.answer?.('/hook', { status: 404 })
      console.log(kind.name, _, (await client.put(`/channel/${e(c)}`, { token: 'ct' })).status)
      console.log((await client.put('/producer/p', { token: 'pt' })).status)
      const put = await client.put(`/channel/${e(c)}/consumer/${e(k)}`, { token: 'kt', callbackUrl: `http://127.0.0.1:9/hook` })
      console.log(put.status)
      const post = await client.post(`/channel/${e(c)}/broadcast`, 'x', { 'X-Broker-Channel-Token': 'ct', 'X-Broker-Producer-ID': 'p', 'X-Broker-Producer-Token': 'pt' })
      console.log(post.status, post.text)
      await new Promise((r) => setTimeout(r, 1500))
      const js = await client.get('/job-status')
      console.log(kind.name, _, 'JOB', js.status, js.text.replace(/"[^"]{60,}"/g, '"…"').slice(0, 400))
      const d = await client.get('/dlq-status')
      console.log(kind.name, _, 'DLQ', d.status, d.text.replace(/"[^"]{60,}"/g, '"…"').slice(0, 300))
    } finally { await broker.stop() }
  }, 60_000)

  it('U+0000 and others', async () => {
    const broker = await Broker.start(kind, { webhooks: QUICK })
    try {
      const { client } = broker
      await client.put('/channel/c', { token: 'ct' }); await client.put('/producer/p', { token: 'pt' })
      await client.put('/channel/c/consumer/k', { token: 'kt', callbackUrl: 'http://127.0.0.1:9/', type: 'pull' })
      const t = { 'X-Broker-Channel-Token': 'ct', 'X-Broker-Consumer-Token': 'kt' }
      for (const [m, p] of [['GET','/channel/%00'],['GET','/producer/%00'],['GET','/channel/%00/messages-status'],['GET','/channel/c/message/%00'],['GET','/channel/c/scheduled-message/%00'],['GET','/channel/c/consumer/%00'],['GET','/channel/c/consumer/k/job/%00'],['GET','/channel/c/consumer/%00/dlq'],['GET','/api/webhooks/consumers?channel=%00'],['POST','/api/webhooks/channels/%00/consumers/%00/resume'],['PUT','/channel/%00'],['PUT','/channel/' + 'x'.repeat(4000)],['GET','/channel/%ff'],['GET','/channel/%c0%80'],['GET','/channel/' + 'x'.repeat(5000)],['GET','/channel/c/messages-status/'],['GET','/channel/../channels'],['GET','//channels'],['GET','http://x/channels'],['GET','/%63hannels'],['GET','/channels#x'],['GET','/channels?next=' + 'A'.repeat(5000)],['OPTIONS','*'],['HEAD','/channels'],['PATCH','/channels'],['GET','/channel/c/consumer/k/queued-jobs?limit=1e3']] as const) {
        const a = await client.send(m, p, { headers: m === 'PUT' ? [] : t, ...(m === 'PUT' ? { form: { token: 'x' } } : {}) }).catch((e) => ({ status: String(e), text: '', headers: {} }))
        console.log(kind.name, m, p.slice(0, 60), a.status, JSON.stringify(a.text.slice(0, 90)), (a.headers as any).location ?? '')
      }
    } finally { await broker.stop() }
  }, 60_000)

  it('fractional pause', async () => {
    const broker = await Broker.start(kind, { liveClock: true, webhooks: { delivery: { ...QUICK.delivery, backoffSeconds: [0.05], maxRetry: 9, breaker: { failures: 2, forSeconds: 0.01, pauseSeconds: 1.5, longestPauseSeconds: 2.5 } } } as never })
    try {
      const { client } = broker
      await client.put('/channel/c', { token: 'ct' }); await client.put('/producer/p', { token: 'pt' })
      await client.put('/channel/c/consumer/k', { token: 'kt', callbackUrl: 'http://127.0.0.1:9/' })
      await client.post('/channel/c/broadcast', 'x', { 'X-Broker-Channel-Token': 'ct', 'X-Broker-Producer-ID': 'p', 'X-Broker-Producer-Token': 'pt' })
      await new Promise((r) => setTimeout(r, 1200))
      const a = await client.get('/api/webhooks/consumers')
      console.log(kind.name, 'PAUSE', a.text.slice(0, 600))
    } finally { await broker.stop() }
  }, 60_000)
})
