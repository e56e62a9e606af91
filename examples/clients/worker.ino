// An ESP32 that tries trials of a served study by itself, with the library ArduinoJson 7
#include <ArduinoJson.h>
#include <HTTPClient.h>
#include <WiFi.h>
const String STUDY = "http://192.168.1.10:8765/v1/studies/NAME", TOKEN = "...";
float rollout(float kp, float kd) { return -sq(kp / 60 - 1) - sq(kd - 0.7f); }  // yours; NAN where it fails
JsonDocument post(const String& path, const JsonDocument& body) {  // again, with the same key, until there is an answer
  String text, key = String(esp_random(), HEX) + String(esp_random(), HEX) + String(esp_random(), HEX);
  JsonDocument found;
  serializeJson(body, text);
  for (;; delay(1000)) {
    HTTPClient http;
    http.begin(STUDY + path), http.setTimeout(60000);
    http.addHeader("Content-Type", "application/json");
    http.addHeader("Authorization", "Bearer " + TOKEN);
    http.addHeader("Idempotency-Key", key);
    const int status = http.POST(text);  // negative: no answer
    if (status >= 200 && status < 300 && !deserializeJson(found, http.getString())) return found;
    if (status >= 400 && status < 500) Serial.println(http.getString());  // refused: `detail` says why
  }
}
void setup() { Serial.begin(115200); WiFi.begin("NETWORK", "PASSWORD"); }
void loop() {
  JsonDocument ask, result;
  ask["worker"] = "ESP32";
  const JsonDocument trial = post("/ask", ask)["trials"][0];
  const float value = rollout(trial["params"]["kp"], trial["params"]["kd"]);
  if (isfinite(value)) result["return"] = value; else result["failed"] = "its return was no number";
  post("/trials/" + trial["id"].as<String>() + "/tell", result);
}
