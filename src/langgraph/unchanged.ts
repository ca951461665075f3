import { isJsonObject, type JsonObject, type JsonValue } from "../core/json.js";
import { isListField, MESSAGES, type MessageForm, oftenEmpty, TAG } from "./message-form.js";
import { isUndefined } from "./messages.js";
import { isUsualObject, type Message, type MessageClass, usualClassOf } from "./usual-message.js";

/**
 * Whether LangGraph's own serializer would certainly write a message as this again.
 *
 * What is written are the fields that the constructor was given, with the values that they have now. Nothing
 * is kept to compare them with: of plain data, what was written says what it was. So a message may have been
 * changed in place, in any depth, and is found out. Where anything is not as messages usually are (another class,
 * a date, a getter of the class, an instance among the fields, a key that is written under another name), the
 * answer is no.
 *
 * @param written what the serializer wrote of this very message before
 */
export function isStillWritten(message: object, written: JsonValue | undefined): boolean {
  const known = usualClassOf(message);
  if (known === undefined || !isJsonObject(written)) return false;
  const its = message as Message;
  const { lc, type, id, kwargs } = written;
  if (lc !== 1 || type !== "constructor" || !isJsonObject(kwargs) || countOf(written) !== 4)
    return false;
  return isId(id, its.lc_namespace, known) && hasFields(its, kwargs, NONE, 0);
}

/** The same, where the message's form is at hand. */
export function isStillOfForm(message: object, form: MessageForm): boolean {
  const { [TAG]: name } = form;
  const known = usualClassOf(message);
  if (known === undefined || known.lc_name() !== name) return false;
  const its = message as Message;
  const { lc_namespace: namespace } = its;
  if (!Array.isArray(namespace) || namespace.length !== MESSAGES.length) return false;
  for (let i = 0; i < MESSAGES.length; i++) if (namespace[i] !== MESSAGES[i]) return false;
  return hasFields(its, form, oftenEmpty(name), 1);
}

const NONE: readonly string[] = [];

/** Whether a message's fields are these, without some tags, and of those left out each is empty. */
function hasFields(
  its: Message,
  written: JsonObject,
  empties: readonly string[],
  tags: 0 | 1,
): boolean {
  let fields = 0;
  let leftOut = 0;
  for (const key in its.lc_kwargs as object) {
    // A field that the message lacks is looked for in its class, and then in what the constructor was given.
    if (!Object.hasOwn(its, key) || (tags === 1 && key === TAG)) return false;
    if (Object.hasOwn(written, key)) {
      if (!isAsWritten(its[key], written[key] as JsonValue)) return false;
      fields++;
    } else {
      if (!empties.includes(key) || !isAsWritten(its[key], isListField(key) ? [] : {}))
        return false;
      leftOut++;
    }
  }
  if (fields + tags !== countOf(written)) return false;
  let wanted = 0;
  for (const key of empties) if (!Object.hasOwn(written, key)) wanted++;
  return leftOut === wanted;
}

function isId(id: JsonValue | undefined, namespace: unknown, known: MessageClass): boolean {
  if (!Array.isArray(id) || !Array.isArray(namespace)) return false;
  const length = namespace.length;
  if (id.length !== length + 1 || id[length] !== known.lc_name()) return false;
  for (let i = 0; i < length; i++) if (id[i] !== namespace[i]) return false;
  return true;
}

function isAsWritten(value: unknown, written: JsonValue): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
    case "number":
      return value === written;
    case "undefined":
      return isUndefined(written);
    case "object":
      if (value === null) return written === null;
      return Array.isArray(value)
        ? isListAsWritten(value, written)
        : isObjectAsWritten(value, written);
    default:
      return false;
  }
}

function isListAsWritten(list: readonly unknown[], written: JsonValue): boolean {
  if (!Array.isArray(written) || written.length !== list.length) return false;
  if (Object.getPrototypeOf(list) !== Array.prototype) return false;
  for (let i = 0; i < list.length; i++) if (!isAsWritten(list[i], written[i])) return false;
  return true;
}

function isObjectAsWritten(object: object, written: JsonValue): boolean {
  if (!isUsualObject(object) || !isJsonObject(written)) return false;
  let members = 0;
  for (const key in object) {
    if (!Object.hasOwn(written, key)) return false;
    if (!isAsWritten(object[key], written[key] as JsonValue)) return false;
    members++;
  }
  return members === countOf(written);
}

function countOf(object: JsonObject): number {
  let count = 0;
  for (const _ in object) count++;
  return count;
}
