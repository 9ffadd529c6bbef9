// Made by `unstuck install opencode`; `unstuck uninstall opencode` takes it out again.
import { spawn } from "node:child_process"

const COMMAND = %s
const GUARDS = %s

function ask(event) {
  return new Promise((resolve) => {
    const child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    const timer = setTimeout(() => child.kill(), 20000)
    child.stdout.on("data", (part) => { said += part })
    child.on("error", () => resolve({}))
    child.on("close", () => {
      clearTimeout(timer)
      try { resolve(said ? JSON.parse(said) : {}) } catch { resolve({}) }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

export const Unstuck = async ({ directory }) => {
  const asked = new Map()
  const event = (name, input, more) => ({
    hook_event_name: name, session_id: input.sessionID, cwd: directory, tool_name: input.tool, ...more,
  })
  return {
    "tool.execute.before": async (input, output) => {
      asked.set(input.callID, output.args)
      if (!GUARDS) return
      const said = await ask(event("PreToolUse", input, { tool_input: output.args }))
      const answer = said.hookSpecificOutput ?? {}
      if (answer.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const args = asked.get(input.callID) ?? input.args ?? {}
      asked.delete(input.callID)
      const said = await ask(event("PostToolUse", input, {
        tool_input: args, tool_response: output.output, exit_code: output.metadata?.exit,
      }))
      const told = said.hookSpecificOutput?.additionalContext
      if (told) output.output = `${output.output}\n\n${told}`
    },
  }
}
