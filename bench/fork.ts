/** One run in a process of its own: the task goes in as its argument, the answer comes back as its only message. */
import { fork } from 'node:child_process'

export interface ForkOptions {
  readonly signal: AbortSignal
  /** Left out: it may take as long as it takes. */
  readonly timeoutMs?: number
  /** Told what the child writes to its standard error. */
  readonly onText?: (text: Buffer) => void
  /** For Node itself; left out: those of this process. */
  readonly nodeFlags?: readonly string[]
}

/** Runs `program`; rejects with the child's own complaint when it fails. `Answer` is a promise of the program. */
export function inChild<Answer>(
  program: string,
  task: object,
  { signal, timeoutMs, onText, nodeFlags }: ForkOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = fork(program, [JSON.stringify(task)], {
      signal,
      ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
      ...(nodeFlags === undefined ? {} : { execArgv: [...nodeFlags] }),
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    let answer: { readonly value: Answer } | null = null
    let complaints = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      onText?.(chunk)
      complaints = (complaints + chunk).slice(-4000)
    })
    // The child sends exactly one message, of this type.
    child.once('message', (message) => {
      answer = { value: message as Answer }
    })
    child.once('error', reject)
    child.once('close', (code, ended) => {
      if (answer !== null && code === 0) resolve(answer.value)
      else reject(new Error(complaint(complaints) ?? `ended with ${code ?? ended}`))
    })
  })
}

/** The line of an uncaught error, without its stack. */
function complaint(text: string): string | undefined {
  return text.split('\n').find((line) => /^\S*error\b.*:/i.test(line)) ?? text.trim().split('\n').at(-1)
}
