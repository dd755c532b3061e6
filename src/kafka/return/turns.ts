/** The calls of this process on one service, one after the other, in the order in which they came. Each waits only so long. */
import { Turns } from '../../outgoing/turns.ts'

interface Line {
  readonly turns: Turns
  /** Who has the turn, and who waits for it. */
  people: number
}

export class ServiceTurns {
  readonly #lines = new Map<string, Line>()

  /** Acts when it is its turn; rejects with the signal's reason when that is aborted before. */
  async inTurn<T>(service: string, patience: AbortSignal, act: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(service) ?? { turns: new Turns(1), people: 0 }
    this.#lines.set(service, line)
    line.people += 1
    try {
      await line.turns.take(patience)
      try {
        return await act()
      } finally {
        line.turns.giveBack()
      }
    } finally {
      line.people -= 1
      if (line.people === 0) this.#lines.delete(service)
    }
  }
}
