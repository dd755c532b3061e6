import { describe, expect, it } from 'vitest'
import { chainOf } from './stack.ts'

const own = (stack: string) =>
  chainOf(stack).map(({ frames }) => frames.filter(({ isOwn }) => isOwn).map(({ text }) => text))
const headings = (stack: string) => chainOf(stack).map(({ heading }) => heading)

describe('the chain of a stack', () => {
  it('of JavaScript has the cause after the error, and tells own frames from others', () => {
    const stack = `OrderError: cannot charge order 17
    at charge (/app/src/orders/charge.ts:42:13)
    at Layer.run (/app/node_modules/router/layer.js:9:1)
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5) {
  [cause]: TypeError: Cannot read properties of undefined (reading 'total')
      at total (/app/src/orders/total.ts:7:3)
      at async Promise.all (index 0) {
    code: 'E_TOTAL'
  }
}`
    expect(headings(stack)).toEqual([
      'OrderError: cannot charge order 17',
      "TypeError: Cannot read properties of undefined (reading 'total')",
    ])
    expect(own(stack)).toEqual([
      ['at charge (/app/src/orders/charge.ts:42:13)'],
      ['at total (/app/src/orders/total.ts:7:3)'],
    ])
    expect(chainOf(stack).map(({ details }) => details)).toEqual(['', "code: 'E_TOTAL'"])
  })

  it('of Java has each cause', () => {
    const stack = `com.shop.OrderException: failed
\tat com.shop.Orders.charge(Orders.java:12)
\tat java.base/java.lang.Thread.run(Thread.java:1583)
Caused by: java.net.SocketTimeoutException: Read timed out
\tat java.base/sun.nio.ch.NioSocketImpl.timedRead(NioSocketImpl.java:278)
\tat com.shop.Http.get(Http.java:8)
\t... 12 more`
    expect(headings(stack)).toEqual([
      'com.shop.OrderException: failed',
      'java.net.SocketTimeoutException: Read timed out',
    ])
    expect(own(stack)).toEqual([
      ['at com.shop.Orders.charge(Orders.java:12)'],
      ['at com.shop.Http.get(Http.java:8)'],
    ])
    expect(chainOf(stack).at(1)?.frames.at(-1)).toEqual({ text: '... 12 more', isOwn: false })
  })

  it('of Python begins with the error that came last, and with the frame in which it arose', () => {
    const stack = `Traceback (most recent call last):
  File "/app/orders.py", line 3, in total
    return order["total"]
KeyError: 'total'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/celery/app.py", line 1, in run
    return task()
  File "/app/worker.py", line 9, in handle
    raise OrderError("no total") from error
OrderError: no total`
    expect(headings(stack)).toEqual(['OrderError: no total', "KeyError: 'total'"])
    expect(own(stack)).toEqual([
      ['File "/app/worker.py", line 9, in handle\n    raise OrderError("no total") from error'],
      ['File "/app/orders.py", line 3, in total\n    return order["total"]'],
    ])
  })

  it('of Go joins a call with its place', () => {
    const stack = `panic: no total

goroutine 1 [running]:
main.total(0xc000012345)
\t/app/main.go:12 +0x1d
main.main()
\t/app/main.go:5 +0x20`
    expect(own(stack)[0]).toEqual([
      'main.total(0xc000012345) /app/main.go:12 +0x1d',
      'main.main() /app/main.go:5 +0x20',
    ])
  })

  it('keeps messages of several lines, and texts that are no stack', () => {
    expect(headings('Error: a\nb\n    at f (/app/a.ts:1:1)')).toEqual(['Error: a\nb'])
    expect(chainOf('it just failed')).toEqual([{ heading: 'it just failed', frames: [], details: '' }])
    expect(chainOf('')).toEqual([])
  })
})
